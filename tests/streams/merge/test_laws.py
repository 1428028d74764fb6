"""What every strategy owes: the order of the parts does not matter, a part given twice counts once."""

from __future__ import annotations

import copy
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.claims import claim_of, claims_in
from streams.merge import BUILT_IN, Merged, Part
from streams.merge.labels import favourites, rows_key

KEYS = st.sampled_from(["a", "b", "scores", "z"])
NUMBERS = st.one_of(
    st.integers(-(2**63), 2**63 - 1), st.floats(), st.sampled_from([0.0, 1.0, float("nan"), float("inf")])
)
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    NUMBERS,
    st.text(max_size=3),
    st.binary(max_size=2),
    st.lists(st.integers(0, 3), max_size=2),
    st.lists(st.floats(), max_size=3),
)
NAMES = st.sampled_from(["cat", "dog", "owl"])
LABELS = st.dictionaries(NAMES, st.floats(0, 1), min_size=1)
ROW = st.fixed_dictionaries({"label": NAMES, "score": st.floats(0, 1)})
ROWS = st.lists(ROW, max_size=3)
CLAIMS = st.builds(
    lambda digit, size, kind: {"dataref": "s3://b/x", "sha256": digit * 64, "size": size, **kind},
    st.sampled_from("ab"),
    st.integers(0, 1),
    st.sampled_from([{}, {"content_type": "text/plain"}]),
)
ANY = st.one_of(LEAVES, LABELS, ROW, ROWS, CLAIMS)
MAPS = st.one_of(
    st.dictionaries(KEYS, st.one_of(ANY, st.dictionaries(KEYS, ANY, max_size=2)), max_size=3),
    st.fixed_dictionaries({"label": NAMES, "scores": st.one_of(LABELS, ROWS)}),
)
OUTPUTS = st.one_of(ANY, MAPS)
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


@pytest.mark.parametrize("name", sorted(BUILT_IN))
@given(parts=st.lists(PARTS, min_size=1, max_size=4), params=PARAMS)
def test_parts_stay_as_they_are_and_claims_stay_whole(name, parts, params):
    before = copy.deepcopy(parts)
    merged = BUILT_IN[name](parts, params)
    assert repr(parts) == repr(before)
    assert merged.confidence is None or 0 <= merged.confidence <= 1
    given = [claim for part in parts for claim in claims_in(part.output)]
    assert all(claim in given for claim in claims_in(merged.output))
    assert not any(map(_is_torn, _maps(merged.output)))


@given(outputs=st.lists(LABELS | ROWS, min_size=1, max_size=4), shares=st.lists(st.floats(0, 1), min_size=4))
def test_fused_scores_stay_between_those_given_and_in_order(outputs, shares):
    parts = [Part(f"s{n}", {"scores": one}, None, shares[n]) for n, one in enumerate(outputs)]
    fused = BUILT_IN["weighted_fusion"](parts, {"labels": ["scores"]}).output["scores"]
    if isinstance(fused, dict):
        assert all(0 <= score <= 1 for score in fused.values())
    else:
        scores = [row["score"] for row in fused]
        assert all(0 <= score <= 1 for score in scores)
        if len({row["label"] for row in fused}) == len(fused) and len(outputs) > 1 and _are_rows(outputs):
            assert scores == sorted(scores, reverse=True)


@given(data=st.data(), shares=st.lists(st.floats(0.1, 1), min_size=3, max_size=3))
def test_a_label_fits_the_scores_beside_it(data, shares):
    forms = data.draw(st.sampled_from([_as_map, _as_rows, _as_list]))
    given = data.draw(st.lists(st.lists(st.floats(0.01, 1), min_size=3, max_size=3), min_size=1, max_size=3))
    parts = [Part(f"s{n}", forms(one), None, shares[n]) for n, one in enumerate(given)]
    fused = BUILT_IN["weighted_fusion"](parts, {"labels": ["scores"]}).output
    assert fused["label"] in favourites(fused["scores"])


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


TORN = ("dataref", "sha256", "size", "content_type")


def _is_torn(value):
    """A map with some of a claim's keys that is no claim: two claims were mixed, or one was looked into."""
    return any(key in value for key in TORN) and claim_of(value) is None


def _maps(value):
    if isinstance(value, dict):
        yield value
        for inner in value.values():
            yield from _maps(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _maps(inner)


def _are_rows(outputs):
    keys = [rows_key(one) for one in outputs]
    return all(key is not None for key in keys) and any(one != outputs[0] for one in outputs)


def _best(scores):
    return max(range(len(scores)), key=scores.__getitem__)


def _as_map(scores):
    return {"label": "abc"[_best(scores)], "scores": dict(zip("abc", scores, strict=True))}


def _as_rows(scores):
    rows = [{"label": label, "score": score} for label, score in zip("abc", scores, strict=True)]
    return {"label": "abc"[_best(scores)], "scores": rows}


def _as_list(scores):
    return {"label": _best(scores), "scores": scores}


def _is_number(value):
    return isinstance(value, int | float) and not isinstance(value, bool)


def _sorted(value):
    if isinstance(value, Merged):
        return (_sorted(value.output), value.confidence, sorted(value.warnings))
    if isinstance(value, dict):
        return sorted((key, _sorted(inner)) for key, inner in value.items())
    return value
