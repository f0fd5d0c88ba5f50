"""The job of a soak and its neighbour: one image that speaks the runner's lines, and asks once over its network."""

from pathlib import Path
from typing import Final

import docker

from pidispatch.values.names import PROXY_PORT
from tests.support.box import program_image

#: How the neighbour's log begins a line that tells of a question: what follows is `/<job container>/<its short id>`.
ASKED: Final = "asked "
#: As a job it asks, works as its model's name says (`flaky-1.5`), and ends. As `listen` it is the neighbour, which says
#: on its error output who asked, before it answers.
_SCRIPT: Final = rf"""#!/bin/sh
case "$1" in
  listen) exec nc -ll -p {PROXY_PORT} -e /entry answer ;;
  answer)
    read -r method url rest
    while read -r line && [ "${{#line}}" -gt 1 ]; do :; done
    echo "{ASKED}/${{url#http://*/}}" >&2
    printf 'HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n'
    exit 0 ;;
esac
ended() {{
  told="\"code\":$1,\"reason\":\"$2\",\"turns\":1,\"tokens\":{{\"total\":7}}"
  echo "{{\"event\":\"exit\",\"jobId\":\"$PI_JOB_ID\",$told}}"
  exit "$1"
}}
trap 'exit 143' TERM
read -r box </etc/hostname
wget -q -O /dev/null "http://model/$PI_JOB_ID/$box" || ended 1 infra
echo "{{\"event\":\"turn\",\"jobId\":\"$PI_JOB_ID\",\"turns\":1,\"tokens\":7}}"
sleep "${{PI_MODEL#*-}}" & wait $!
tried="/workspace/tried-$PI_JOB_ID"
case "$PI_MODEL" in
  fail-*) ended 1 infra ;;
  flaky-*) [ -e "$tried" ] || {{ : >"$tried"; ended 1 infra; }} ;;
  policy-*) ended 2 turn_budget ;;
esac
ended 0 stop
"""
#: What a folder ignores, so that what a job notes there is no change.
IGNORED: Final = "tried-*\n"


def soak_image(client: docker.DockerClient, folder: Path) -> str:
    """The image, built on the engine of `client`."""
    return program_image(client, folder, _SCRIPT)
