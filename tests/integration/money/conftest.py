"""One server for each file of tests and each kind of server; every test begins with nothing in it."""

from tests.integration.jobs.conftest import client, world

__all__ = ["client", "world"]
