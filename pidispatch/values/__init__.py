"""Frozen values the whole house speaks in: jobs, outcomes, reasons, usage, records, limits.

Nothing here does I/O or knows any other room, so every rule stated in a value can be tested by itself.
"""
