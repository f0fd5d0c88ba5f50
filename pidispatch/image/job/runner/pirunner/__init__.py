"""The runner: the one process of a job container. It drives the pi coding agent through a single prompt.

Its contract is narrow: environment variables and mounted folders in, JSON lines on stdout and an exit code out
(docs/reference/runner.md). It promises that exactly one ``exit`` line is printed whatever happens, that nothing is
spent before every check has passed, and that nothing the agent started outlives that line.

It imports the standard library only, because it ships inside the image without the rest of the package.
"""
