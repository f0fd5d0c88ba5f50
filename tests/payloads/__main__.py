"""Fetches the payloads: `python -m tests.payloads`."""

import sys

from tests.payloads import examples

try:
    print(f"{len(examples())} payloads")
except RuntimeError as error:
    sys.exit(str(error))
