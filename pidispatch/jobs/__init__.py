"""The jobs that were accepted: their rows, the scripts that move them, their ids, and the ticket that announces each.

Promise: every change of state is one atomic script, so that what was accepted is never lost and never run twice.
"""
