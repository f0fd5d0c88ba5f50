"""An engine's socket that answers as a rootless engine does: https://docs.docker.com/reference/api/engine/"""

import json
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, Final

VERSION: Final = "20.10.24"
#: Path, without the version of the interface -> the answer.
_ANSWERS: Final[dict[str, dict[str, Any]]] = {
    "version": {"Version": VERSION, "ApiVersion": "1.41", "MinAPIVersion": "1.12", "Os": "linux", "Arch": "amd64"},
    "info": {
        "ID": "AAAA:BBBB",
        "OperatingSystem": "Debian GNU/Linux 12 (bookworm)",
        "SecurityOptions": ["name=seccomp,profile=default", "name=rootless", "name=cgroupns"],
    },
}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        found = _ANSWERS.get(self.path.rpartition("/")[2])
        body = json.dumps(found or {"message": "page not found"}).encode()
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: who asked is known."""


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True


@contextmanager
def rootless_engine(folder: Path) -> Iterator[str]:
    """Such an engine in `folder`; what `DOCKER_HOST` would be."""
    path = folder / "rootless.sock"
    with _Server(str(path), _Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield f"unix://{path}"
        finally:
            server.shutdown()
            thread.join()
