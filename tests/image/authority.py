"""An authority of the tests' own, and what it has signed: the certificate of the edge GitHub under its real names.

It is made once for an engine and lies there as an image, from which the images of the tests take their part: the job
image its certificate, the one in front of the edge the site's key. The authority's own key is kept by nobody.
"""

import io
import tarfile
from datetime import UTC, datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tests.fakes.github import HOSTS

#: Files of the image: the authority's certificate, and the site's key with its certificate.
AUTHORITY: Final = "authority.crt"
SITE: Final = "site.pem"
_DAYS: Final = 3650


def files() -> dict[str, bytes]:
    """A new authority's files."""
    now = datetime.now(UTC) - timedelta(days=1)
    root_key, site_key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    root_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "pi-dispatch tests")])
    identifier = x509.SubjectKeyIdentifier.from_public_key(root_key.public_key())
    root = (
        _begun(root_name, root_key.public_key(), root_name, now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .add_extension(identifier, critical=False)
        .sign(root_key, hashes.SHA256())
    )
    names = x509.SubjectAlternativeName([x509.DNSName(host) for host in HOSTS])
    authority_identifier = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier)
    site = (
        _begun(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, HOSTS[1])]), site_key.public_key(), root_name, now)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(names, critical=False)
        .add_extension(authority_identifier, critical=False)
        .sign(root_key, hashes.SHA256())
    )
    secret = site_key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    pem = serialization.Encoding.PEM
    return {AUTHORITY: root.public_bytes(pem), SITE: secret + site.public_bytes(pem)}


def _begun(
    subject: x509.Name, key: ec.EllipticCurvePublicKey, issuer: x509.Name, now: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + timedelta(days=_DAYS))
    )


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def root_file_system() -> bytes:
    """A tar with these files, which is the whole image."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name, content in files().items():
            entry = tarfile.TarInfo(name)
            entry.mode, entry.size = 0o644, len(content)
            tar.addfile(entry, io.BytesIO(content))
    return packed.getvalue()
