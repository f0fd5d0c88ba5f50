"""One locked-down container per job: what it is given, how it is started, watched and removed, what it says.

Keeps the promise that the box holds: every container is made from one pure description that cannot be written
without its hardening (docs/explanation/box.md). The only room that talks to the container engine.
"""
