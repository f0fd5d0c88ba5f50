"""Where a run works and what it is told: the folder, the host's own git, the job directory, prompt and event.

Keeps one promise above all: the host's git never works with a configuration that an agent could have written
(docs/explanation/host-git.md).
"""
