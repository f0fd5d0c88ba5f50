"""What end-to-end tests, the demo and the benchmarks set up: a repository, a scripted model, a run of the program."""
