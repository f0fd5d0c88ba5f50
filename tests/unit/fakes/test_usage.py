"""Tests can compute what the model will report."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.model import Usage, total_usage, usage_of

COUNTS = st.integers(min_value=0, max_value=10**9)


def test_the_documented_table() -> None:
    assert usage_of(0) == Usage(input=1000, cached=0, output=50, cache_write=300)
    assert usage_of(1) == Usage(input=1100, cached=200, output=50, cache_write=0)
    assert [usage_of(turn).total for turn in range(3)] == [1350, 1350, 1450]


def test_total_over_turns_and_with_an_override() -> None:
    assert total_usage(3) == Usage(input=3300, cached=400, output=150, cache_write=300)
    assert total_usage(0) == Usage()
    assert total_usage(2, Usage(input=7)) == Usage(input=14)


@given(st.builds(Usage, COUNTS, COUNTS, COUNTS, COUNTS))
def test_openai_sees_the_same_total_without_cache_writes(usage: Usage) -> None:
    seen = usage.seen_by("openai")
    assert (seen.total, seen.prompt, seen.cache_write) == (usage.total, usage.prompt, 0)
    assert usage.seen_by("anthropic") == usage


@given(st.builds(Usage, COUNTS, COUNTS, COUNTS, COUNTS))
def test_a_stream_that_only_began_reports_at_most_one_token_of_output(usage: Usage) -> None:
    assert usage.started.prompt == usage.prompt
    assert usage.started.output == min(1, usage.output)


def test_negative_counts_are_refused() -> None:
    with pytest.raises(ValueError, match="cannot be negative"):
        Usage(input=-1)
