"""Names of images, checked before they become part of a request to the engine.

Grammar: https://pkg.go.dev/github.com/distribution/reference
"""

import re

_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_DOMAIN = r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[0-9]+)?/)?"
_REFERENCE = re.compile(
    rf"(?:{_DOMAIN}{_PART}(?:/{_PART})*(?::[A-Za-z0-9_][A-Za-z0-9_.-]{{0,127}})?(?:@sha256:[0-9a-f]{{64}})?"
    r"|sha256:[0-9a-f]{64})"
)
_MAX_CHARS = 400


def image_reference(text: object) -> str:
    """`text` if it is an image reference such as `pi-job:latest`; else raises `ValueError`."""
    if not isinstance(text, str) or len(text) > _MAX_CHARS or not _REFERENCE.fullmatch(text):
        raise ValueError("is no image reference: lower-case letters, digits and . _ - / with a tag, like pi-job:latest")
    return text
