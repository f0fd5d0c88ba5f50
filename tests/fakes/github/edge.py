"""The edge: a whole GitHub for the tests, with its API, its git server and its webhooks, on this machine alone.

It listens on a port of 127.0.0.1 for what runs on the host, and on a unix socket for what runs in the box: there it
stands under its real names, by a relay that ends TLS (`tests.fakes.model.relay`). The addresses in its answers are
those by which it was asked.
"""

import secrets
import shutil
import socketserver
import tempfile
import threading
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Self

from tests.fakes.github import rest_apps
from tests.fakes.github.apps import private_key
from tests.fakes.github.faults import Fault
from tests.fakes.github.front import Asked, Front, Handler, Trouble
from tests.fakes.github.model import Installation, Issue, Level, Pull, Repository, Review, Token
from tests.fakes.github.payloads import SECRET
from tests.fakes.github.shapes import Shapes
from tests.fakes.github.state import State, utc_now
from tests.fakes.github.webhooks import Delivery, Hook, Sender


class Edge:
    """One of it, between `with` and its end."""

    def __init__(self, folder: Path, socket: Path | None = None, now: Callable[[], datetime] = utc_now) -> None:
        """Repositories lie below `folder`, which must not exist; its clock shows `now`.

        `socket`: where the socket is to be; a folder of its own where nothing is said.
        """
        self.state = State(folder, now)
        self.app = rest_apps.App()
        self._front = Front(self.state, self.app, lambda: self.shapes)
        self.asked: list[Asked] = self._front.asked
        self.over = threading.Event()
        # Short, because the path of a unix socket is bounded.
        self._own = None if socket is not None else Path(tempfile.mkdtemp(prefix="pi-edge-", dir="/tmp"))
        self.socket = socket or Path(str(self._own), "edge.sock")
        self.hooks = Sender(lambda: self.shapes)
        self.state.listeners.append(self.hooks.hear)

    def __enter__(self) -> Self:
        shared = {"front": self._front, "over": self.over}
        open_ = type("Edge", (Handler,), {**shared, "boxed": False})
        # A unix socket knows nothing of TCP's delays.
        boxed = type("Edge", (Handler,), {**shared, "boxed": True, "disable_nagle_algorithm": False})

        if self._own is not None:
            self._own.chmod(0o755)
        self.socket.unlink(missing_ok=True)
        tcp, unix = _Tcp(("127.0.0.1", 0), open_), _Unix(str(self.socket), boxed)
        self._servers: tuple[socketserver.BaseServer, ...] = (tcp, unix)
        self.port = tcp.server_port
        # Who connects in the box is another user.
        self.socket.chmod(0o666)
        for server in self._servers:
            threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.over.set()
        for server in self._servers:
            server.shutdown()
            server.server_close()
        self.hooks.close()
        self.socket.unlink(missing_ok=True)
        if self._own is not None:
            shutil.rmtree(self._own)
        if self._front.broken and kind is None:
            raise RuntimeError("the edge itself broke:\n" + "\n".join(self._front.broken))

    @property
    def api_url(self) -> str:
        """What `GITHUB_API_URL` is to be."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def git_url(self) -> str:
        """What `GITHUB_URL` is to be."""
        return self.api_url

    @property
    def shapes(self) -> Shapes:
        """With the addresses of this machine."""
        return Shapes(self.api_url, self.git_url)

    # What a test makes.

    def repository(
        self,
        full_name: str = "acme/web",
        files: Mapping[str, bytes | str] | None = None,
        *,
        default: str = "main",
        private: bool = True,
        protected: bool = True,
        permissions: Mapping[str, Level] | None = None,
    ) -> Repository:
        """A repository with these files, to which alice may write, where nobody else is named."""
        return self.state.add_repository(
            full_name,
            {"README.md": "# Sample\n"} if files is None else files,
            default=default,
            private=private,
            protected=protected,
            permissions={"alice": "write"} if permissions is None else permissions,
        )

    def person(self, login: str, permissions: dict[str, Level] | None = None) -> str:
        """A personal access token, for all that its owner may do, or for less; the log calls it by the login."""
        value = f"ghp_{secrets.token_hex(18)}"
        self.state.add_token(Token(value, login, self.state.user(login), permissions=permissions))
        return value

    def install(self, *names: str, permissions: dict[str, Level] | None = None, installation: int = 88) -> Installation:
        """Install the App on these repositories, which are of one owner."""
        account = self.state.repository(names[0]).owner
        made = Installation(installation, account, {*names})
        made.permissions = permissions or made.permissions
        self.state.installations[installation] = made
        self.state.user(self.app.bot)
        return made

    def app_variables(self, folder: Path, installation: int = 88) -> dict[str, str]:
        """The settings of a deployment with the App, whose key is put into `folder`."""
        key = folder / "app.pem"
        key.write_text(private_key())
        key.chmod(0o600)
        return self.addresses() | {
            "GITHUB_AUTH_SOURCE": "app",
            "GITHUB_APP_ID": str(self.app.id),
            "GITHUB_APP_INSTALLATION_ID": str(installation),
            "GITHUB_APP_PRIVATE_KEY_PATH": str(key),
        }

    def pat_variables(self, login: str = "pi-bot") -> dict[str, str]:
        """The settings of a deployment with a token of this person's."""
        return self.addresses() | {"GITHUB_AUTH_SOURCE": "pat", "GITHUB_PAT": self.person(login)}

    def addresses(self) -> dict[str, str]:
        """Where it is, as settings."""
        return {"GITHUB_API_URL": self.api_url, "GITHUB_URL": self.git_url, "NO_PROXY": "127.0.0.1"}

    def hook(self, url: str, *events: str, secret: str = SECRET) -> Hook:
        """Send deliveries there from now on: of these events, or of all."""
        made = Hook(self.state.new_id(), url, secret, frozenset(events))
        self.hooks.hooks.append(made)
        return made

    def fault(self, pattern: str, fault: Fault, times: int | None = None) -> None:
        """Let it go wrong, so many times or for ever, for paths that match from their beginning."""
        self._front.faults[pattern] = Trouble(fault, times)

    def mend(self) -> None:
        """Let nothing go wrong any more."""
        self._front.faults.clear()

    # What people do.

    def issue(
        self, repo: str = "acme/web", title: str = "Broken link", body: str = "The footer link 404s.", by: str = "alice"
    ) -> Issue:
        """Open an issue."""
        return self.state.issue(self.state.repository(repo), self.state.user(by), title, body, ())

    def label(self, number: int, name: str = "pi:fix", repo: str = "acme/web", by: str = "alice") -> None:
        """Put a label on an issue or a pull request."""
        self.state.label(self.state.repository(repo), self._item(repo, number), self.state.user(by), name)

    def comment(self, number: int, body: str = "@pi fix", repo: str = "acme/web", by: str = "alice") -> None:
        """Comment on one."""
        self.state.comment(self.state.repository(repo), self._item(repo, number), self.state.user(by), body)

    def close(self, number: int, repo: str = "acme/web", by: str = "alice") -> None:
        """Close one."""
        self.state.close(self.state.repository(repo), self._item(repo, number), self.state.user(by))

    def reopen(self, number: int, repo: str = "acme/web", by: str = "alice") -> None:
        """Open one again."""
        self.state.reopen(self.state.repository(repo), self._item(repo, number), self.state.user(by))

    def push(
        self,
        branch: str,
        files: Mapping[str, bytes | str],
        repo: str = "acme/web",
        by: str = "alice",
        *,
        orphan: bool = False,
    ) -> str:
        """Put files on a branch, which begins at the default branch where it is new; `orphan`: over all it was."""
        found = self.state.repository(repo)
        branches = found.git.branches()
        start = None if branch in branches else branches.get(found.default)
        sha = found.git.commit(branch, files, start=start, orphan=orphan)
        self.state.moved(found, self.state.user(by))
        return sha

    def pull(self, head: str, title: str = "Mend the footer", repo: str = "acme/web", by: str = "alice") -> Pull:
        """Open a pull request of a branch, which is made where it is not there."""
        found = self.state.repository(repo)
        if head not in found.git.branches():
            self.push(head, {"mended.txt": f"{head}\n"}, repo, by)
        return self.state.pull(found, self.state.user(by), title, "As asked.", head, found.default)

    def review(
        self,
        number: int,
        state: str = "CHANGES_REQUESTED",
        body: str = "Please mend it.",
        repo: str = "acme/web",
        by: str = "alice",
    ) -> Review:
        """Review a pull request."""
        pull = self._item(repo, number)
        assert isinstance(pull, Pull)
        return self.state.review(self.state.repository(repo), pull, self.state.user(by), state, body)

    def _item(self, repo: str, number: int) -> Issue:
        return self.state.repository(repo).issues[number]

    # What a test looks at.

    def branches(self, repo: str = "acme/web") -> list[str]:
        """Names of the branches."""
        return sorted(self.state.repository(repo).git.branches())

    def pulls(self, repo: str = "acme/web") -> list[Pull]:
        """The pull requests."""
        return self.state.repository(repo).pulls

    def comments(self, number: int, repo: str = "acme/web") -> list[str]:
        """What the comments say."""
        return [one.body for one in self._item(repo, number).comments]

    def paths(self, *, boxed: bool | None = None) -> list[str]:
        """What was asked for, in order, without queries; all of it, or what came from the box or from the host."""
        return [f"{one.method} {one.path.partition('?')[0]}" for one in self.asked if boxed in (None, one.boxed)]

    def deliveries(self) -> list[Delivery]:
        """What the webhooks were sent, once all of it was answered."""
        self.hooks.flush()
        return self.hooks.deliveries

    def secrets(self) -> list[str]:
        """The value of every token there has been: none of them may be anywhere else."""
        return [*self.state.tokens]

    def expire(self, name: str = "") -> int:
        """End the installation's tokens whose names begin so; how many those are."""
        return self.state.expire(name)

    def use_up_rate_limit(self, for_s: float = 60) -> datetime:
        """Answer nothing more until then."""
        until = self.state.instant() + timedelta(seconds=for_s)
        self.state.rate.spend(until)
        return until


class _Tcp(ThreadingHTTPServer):
    daemon_threads = True


class _Unix(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    request_queue_size = 64


__all__ = ["Asked", "Edge", "Fault"]
