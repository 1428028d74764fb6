"""What every strategy owes: the order of the parts does not matter, a part given twice counts once."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.merge import BUILT_IN, Merged, Part

KEYS = st.sampled_from(["a", "b", "scores", "z"])
NUMBERS = st.one_of(
    st.integers(-(2**63), 2**63 - 1), st.floats(), st.sampled_from([0.0, 1.0, float("nan"), float("inf")])
)
LEAVES = st.one_of(
    st.none(), st.booleans(), NUMBERS, st.text(max_size=3), st.lists(st.integers(0, 3), max_size=2)
)
LABELS = st.dictionaries(st.sampled_from(["cat", "dog", "owl"]), st.floats(0, 1), min_size=1)
OUTPUTS = st.one_of(
    LEAVES,
    st.dictionaries(KEYS, st.one_of(LEAVES, LABELS, st.dictionaries(KEYS, LEAVES, max_size=2)), max_size=3),
)
PARTS = st.builds(
    Part,
    step=st.sampled_from(["s1", "s2", "s3", "s4"]),
    output=OUTPUTS,
    confidence=st.none() | st.floats(0, 1) | st.just(float("nan")),
    weight=st.none() | st.floats(-1, 5) | st.just(float("inf")),
    priority=st.none() | st.integers(-2, 2),
    side=st.none() | st.sampled_from(["local", "cloud"]),
)
PARAMS = st.sampled_from(
    [{}, {"labels": ["scores"]}, {"key": "a"}, {"keys": ["a", "b"]}, {"sides": ["local", "cloud"]}]
)


@pytest.mark.parametrize("name", sorted(BUILT_IN))
@given(data=st.data(), parts=st.lists(PARTS, min_size=1, max_size=5), params=PARAMS)
def test_order_and_duplicates_do_not_matter(name, data, parts, params):
    merge = BUILT_IN[name]
    shuffled = data.draw(st.permutations(parts + parts[: data.draw(st.integers(0, len(parts)))]))
    assert repr(_sorted(merge(parts, params))) == repr(_sorted(merge(shuffled, params)))


# One part a step: of several, one is the step's answer and the others do not count.
@given(parts=st.lists(PARTS, min_size=1, max_size=4, unique_by=lambda part: part.step), params=PARAMS)
def test_fusion_gives_finite_numbers_between_those_it_was_given(parts, params):
    parts = [Part(p.step, {"n": p.output}, p.confidence, p.weight) for p in parts if _is_number(p.output)]
    if not parts:
        return
    fused = BUILT_IN["weighted_fusion"](parts, params)
    finite = [p.output["n"] for p in parts if math.isfinite(p.output["n"])]
    if finite:
        assert min(finite) <= fused.output["n"] <= max(finite)
    else:
        assert fused.output == {}
        assert fused.warnings


@pytest.mark.parametrize("name", sorted(set(BUILT_IN) - {"collect", "weighted_fusion"}))
@given(part=PARTS)
def test_a_single_part_is_the_output(name, part):
    assert repr(BUILT_IN[name]([part], {}).output) == repr(part.output)


def _is_number(value):
    return isinstance(value, int | float) and not isinstance(value, bool)


def _sorted(value):
    if isinstance(value, Merged):
        return (_sorted(value.output), value.confidence, sorted(value.warnings))
    if isinstance(value, dict):
        return sorted((key, _sorted(inner)) for key, inner in value.items())
    return value
