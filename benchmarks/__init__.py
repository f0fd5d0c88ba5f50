"""What BENCHMARKS.md quotes, measured by `make bench` beside a named baseline in the same run."""
