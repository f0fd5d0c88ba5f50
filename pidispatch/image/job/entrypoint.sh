#!/bin/sh
# Nothing but exec: signals reach the runner and its exit code is the container's.
exec /usr/bin/python3 -I /app/runner
