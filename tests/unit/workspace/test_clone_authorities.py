"""Authorities that this machine keeps in a folder: git trusts them as everything else here does."""

import subprocess
from pathlib import Path

import pytest

from pidispatch.values.limits import Limits
from pidispatch.workspace import clone as module
from pidispatch.workspace.clone import clone
from tests.support.server_tls import make_authority, make_certificate
from tests.unit.workspace.githost import TOKEN, serve
from tests.unit.workspace.repository import Repository


@pytest.mark.parametrize("variable", ["SSL_CERT_DIR", "REQUESTS_CA_BUNDLE"])
def test_an_authority_in_a_folder_is_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    for name in (*module._NETWORK, "REQUESTS_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    upstream = Repository(tmp_path / "forge" / "owner" / "name.git")
    upstream.write("a.txt", "one\n")
    upstream.commit()
    authority = make_authority(tmp_path)
    server = make_certificate(tmp_path, authority, "server", "IP:127.0.0.1")
    folder = tmp_path / "authorities"
    folder.mkdir()
    (folder / "ours.pem").write_bytes(authority.cert.read_bytes())
    subprocess.run(["openssl", "rehash", str(folder)], check=True)
    monkeypatch.setenv(variable, str(folder))
    with serve(tmp_path / "forge", server) as host:
        workspace = tmp_path / "workspace"
        sha = upstream.git("rev-parse", "HEAD")
        assert clone(f"{host.url}/owner/name.git", sha, workspace, TOKEN, Limits()) is None
        assert (workspace / "a.txt").read_text() == "one\n"
