"""One attempt at a job: its checks in order, its container, and what came of it.

Keeps the promise that nothing spends a token before every check has passed (docs/architecture.md).
"""
