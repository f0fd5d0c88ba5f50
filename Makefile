# The commands of this project. Each sets up what it needs; the virtual environment of all of them is .venv.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
PYTHON := .venv/bin/python

.PHONY: help setup demo test soak soak-kill test-next lint docs image bench newcomer clean

help: ## Say what there is.
	@grep -E '^[a-z-]+:.*## ' Makefile | sed -E 's/:.*## /\t/' | expand -t 12

setup: ## Make .venv with everything in it.
	@tools/setup

demo: setup ## Run the real agent on a sample repository, offline, against a scripted model.
	@tools/with-engine $(PYTHON) tools/demo.py

test: setup ## Lint and run all tests, with the time of each tier.
	@tools/with-engine $(PYTHON) tools/test.py

soak: setup ## Two workers on two engines, 2,000 jobs and a fault every 20 s, for 25 minutes (root on Debian).
	@$(PYTHON) tools/soak.py $(ARGS)

soak-kill: setup ## Play the kill matrix 20 times.
	@tools/with-engine $(PYTHON) tools/soak_kill.py

test-next: setup ## The queue's tests on the newest Celery and kombu; may fail.
	@tools/with-engine $(PYTHON) tools/test_next.py $(ARGS)

lint: setup ## Format check, lint, types, layers.
	@$(PYTHON) tools/lint.py

docs: setup ## Make the generated pages of docs/ anew.
	@$(PYTHON) tools/docs.py

image: setup ## Build the job image (needs a network).
	@.venv/bin/pi-dispatch image build

bench: setup ## Measure, print a table, write benchmarks/results.json.
	@tools/with-engine $(PYTHON) benchmarks/run.py

newcomer: ## Demo and test on a bare Debian made for it, timed (root on Debian).
	@tools/newcomer

clean: ## Remove what the other commands made in this folder.
	rm -rf .venv .venv-next .coverage .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist *.egg-info
