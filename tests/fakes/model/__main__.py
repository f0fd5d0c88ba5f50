"""``python3 -m model``: the scripted model in a container of its own."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

from .codec import CodecError, loads
from .log import RequestLog
from .proxy import Site
from .relay import relay
from .scenarios import CATALOGUE
from .server import Server


def main(argv: list[str] | None = None) -> int:
    """Serve until SIGTERM or SIGINT. 0 = stopped as asked, 1 = could not start."""
    args = _parser().parse_args(argv)
    scenarios = dict(CATALOGUE)
    sites: dict[str, Site | None] = dict.fromkeys(args.host)
    sites |= {host: relay(path) for host, path in args.relay}
    try:
        if args.scenarios is not None:
            scenarios |= loads(args.scenarios.read_text(encoding="utf-8"))
        # Blocked before any thread exists, so that sigwait below is the only receiver. A blocked signal also
        # reaches PID 1, which the kernel spares from signals it has no handler for.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
        server = Server(
            scenarios,
            RequestLog(args.log),
            address=args.listen,
            sites=sites,
            certificate=args.certificate,
        )
    except CodecError as error:
        print(f"model: {args.scenarios}: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"model: cannot start: {error}", file=sys.stderr)
        return 1
    with server:
        print(f"listening on {args.listen[0]}:{server.port}", flush=True)
        signal.sigwait({signal.SIGTERM, signal.SIGINT})
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="model", description="Scripted model and HTTP proxy for tests.")
    parser.add_argument("--listen", type=_address, default=("0.0.0.0", 3128), metavar="HOST:PORT")
    parser.add_argument("--log", type=Path, required=True, metavar="FILE", help="request log, JSON lines")
    parser.add_argument("--scenarios", type=Path, metavar="FILE.json", help="added to the built-in catalogue")
    parser.add_argument(
        "--host", type=str.lower, action="append", default=[], metavar="NAME", help="one more name of the model"
    )
    parser.add_argument(
        "--relay", type=_relayed, action="append", default=[], metavar="NAME=PATH", help="a host behind a unix socket"
    )
    parser.add_argument("--certificate", type=Path, metavar="PEM", help="key and chain for TLS in tunnels")
    return parser


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not HOST:PORT; write for example 127.0.0.1:3128")
    return host, int(port)


def _relayed(text: str) -> tuple[str, Path]:
    host, equals, path = text.partition("=")
    if not host or not equals or not path:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=PATH; write for example api.test=/run/api.sock")
    return host.lower(), Path(path)


if __name__ == "__main__":
    sys.exit(main())
