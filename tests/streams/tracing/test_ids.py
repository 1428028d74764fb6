"""Trace contexts and derived span ids."""

from __future__ import annotations

import re
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.tracing import (
    PLAN,
    REQUEST,
    RESULT,
    Context,
    Spans,
    admitted,
    is_root,
    is_sampled,
    of_model,
    of_subtask,
    parse,
    root,
    sampled_spans,
    within,
)

FORM = re.compile(r"00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]")
SCOPES = st.text(min_size=1, max_size=40)
TIMES = st.integers(0, 2**45)
TRACES = st.integers(1, 2**128 - 1).map(lambda number: f"{number:032x}")
CONTEXTS = st.builds(Context, TRACES, st.integers(1, 2**64 - 1), st.booleans())
NAMES = [
    REQUEST,
    PLAN,
    RESULT,
    *(
        name("step", side, n)
        for name, side, n in product((of_subtask, of_model), ("local", "cloud"), range(4))
    ),
]


@given(CONTEXTS)
def test_a_context_is_read_as_it_was_written(context: Context) -> None:
    assert parse(str(context)) == context
    assert is_sampled(str(context)) is context.sampled


@given(SCOPES, TIMES, st.floats(0, 1))
def test_a_request_without_a_context_always_gets_the_same_one(
    scope: str, accepted: int, ratio: float
) -> None:
    made = root(scope, accepted, ratio)
    assert made == root(scope, accepted, ratio) == admitted(None, scope, accepted, ratio)
    assert FORM.fullmatch(made)
    context = parse(made)
    assert context is not None
    assert is_root(context)


@given(SCOPES, TIMES, st.floats(0, 1), st.floats(0, 1))
def test_who_samples_more_samples_all_that_the_other_does(
    scope: str, at: int, one: float, other: float
) -> None:
    few, many = sorted((one, other))
    assert is_sampled(root(scope, at, few)) <= is_sampled(root(scope, at, many))
    assert not is_sampled(root(scope, at, 0.0))
    assert is_sampled(root(scope, at, 1.0))


def test_about_the_share_that_was_asked_for_is_sampled() -> None:
    found = sum(is_sampled(root(f"r{number}", 1_700_000_000_000, 0.2)) for number in range(5_000))
    assert 850 < found < 1_150


@given(CONTEXTS, SCOPES, TIMES, st.floats(0, 1))
def test_the_caller_s_own_word_counts(context: Context, scope: str, at: int, ratio: float) -> None:
    assert admitted(str(context), scope, at, ratio) == str(context)


@given(CONTEXTS, SCOPES)
def test_every_span_has_an_id_of_its_own_that_needs_no_parent_to_be_known(
    context: Context, scope: str
) -> None:
    spans = Spans(context, scope)
    found = [spans.id(name) for name in NAMES]
    assert len(set(found)) == len(NAMES)
    assert all(0 < number < 2**64 for number in found)
    elsewhere = parse(spans.at(PLAN))
    assert elsewhere is not None
    assert [Spans(elsewhere, scope).id(name) for name in NAMES] == found


@given(CONTEXTS, st.lists(SCOPES, min_size=2, max_size=20, unique=True))
def test_requests_of_one_trace_share_no_span(context: Context, scopes: list[str]) -> None:
    assert len({Spans(context, scope).id(name) for scope in scopes for name in NAMES}) == len(scopes) * len(
        NAMES
    )


@given(CONTEXTS, SCOPES)
def test_what_nobody_asked_for_is_handed_on_as_it_is(context: Context, scope: str) -> None:
    given_ = str(context)
    spans = sampled_spans(given_, scope)
    assert (spans is None) is not context.sampled
    assert within(given_, scope, PLAN) == (given_ if spans is None else spans.at(PLAN))
    assert within(None, scope, PLAN) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "00",
        f"00-{'0' * 32}-{'1' * 16}-01",
        f"00-{'1' * 32}-{'0' * 16}-01",
        f"ff-{'1' * 32}-{'1' * 16}-01",
        f"00-{'1' * 32}-{'1' * 16}-01-more",
        f"00-{'A' * 32}-{'1' * 16}-01",
        f"00-{'1' * 31}-{'1' * 16}-01",
        f"00-{'1' * 32}-{'1' * 16}-1",
        f" 00-{'1' * 32}-{'1' * 16}-01",
        f"00-{'1' * 32}-{'1' * 16}-01\n",
    ],
)
def test_what_is_no_context_counts_as_none(text: str) -> None:
    assert parse(text) is None
    assert admitted(text, "r", 1, 0.0) == root("r", 1)


def test_a_later_version_is_read_as_far_as_it_is_known_and_handed_on_as_ours() -> None:
    later = f"01-{'1' * 32}-{'2' * 16}-03-more"
    assert admitted(later, "r", 1, 0.0) == f"00-{'1' * 32}-{'2' * 16}-01"


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    context = parse(text)
    assert context is None or FORM.fullmatch(str(context))
