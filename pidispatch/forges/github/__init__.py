"""GitHub, and GitHub Enterprise Server."""
