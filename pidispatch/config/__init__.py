"""Settings, clock, log and terminal text: what every other room takes as given. Knows nothing of jobs."""
