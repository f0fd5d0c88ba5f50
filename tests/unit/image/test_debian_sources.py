"""The test base is made from the machine's own package sources: Debian's are taken, other vendors' left out."""

from tests.image import debian

_STANZAS = """\
Types: deb deb-src
URIs: http://mirror.test/debian
Suites: bookworm bookworm-updates bookworm-backports
Components: main non-free-firmware
# A comment between fields.
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://vendor.test/debian
Suites: bookworm
Components: stable

Enabled: no
Types: deb
URIs: http://mirror.test/old
Suites: bookworm
Components: main

Types: deb
URIs: http://mirror.test/security
Suites: bookworm-security
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 abc
"""
_LINES = """\
# deb http://mirror.test/debian bookworm main
deb http://mirror.test/debian bookworm main contrib   # the main archive
deb-src http://mirror.test/debian bookworm main
deb [arch=amd64 signed-by=/k.gpg] http://mirror.test/security bookworm-security main
deb http://vendor.test/pg bookworm-pgdg main
deb http://vendor.test/engine bookworm stable
"""


def test_stanzas_of_the_release_are_kept_with_their_keys() -> None:
    assert debian.stanza_sources([_STANZAS], "bookworm") == (
        "Types: deb\n"
        "URIs: http://mirror.test/debian\n"
        "Suites: bookworm bookworm-updates\n"
        "Components: main\n"
        "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n"
        "\n"
        "Types: deb\n"
        "URIs: http://mirror.test/security\n"
        "Suites: bookworm-security\n"
        "Components: main\n"
        "Signed-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n abc\n"
    )


def test_lines_of_the_release_are_kept_with_their_options() -> None:
    assert debian.one_line_sources([_LINES], "bookworm") == (
        "deb http://mirror.test/debian bookworm main\n"
        "deb [arch=amd64 signed-by=/k.gpg] http://mirror.test/security bookworm-security main\n"
    )


def test_another_release_has_none_of_them() -> None:
    assert debian.stanza_sources([_STANZAS], "trixie") == ""
    assert debian.one_line_sources([_LINES], "trixie") == ""
