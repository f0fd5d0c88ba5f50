"""Entry point of the job container: ``python3 -I /app/runner``."""

import os
import sys

from pirunner.layout import Layout
from pirunner.main import main

if __name__ == "__main__":
    code = main(sys.argv, os.environ, Layout())
    sys.stdout.flush()
    # Skips the interpreter's shutdown: a helper thread still blocked on a pipe must not turn the code into another.
    os._exit(code)
