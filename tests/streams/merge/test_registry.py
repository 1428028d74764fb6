from __future__ import annotations

import sys
from importlib.metadata import EntryPoint

import pytest

from schemas.messages import Failure, Merge
from streams.merge import BUILT_IN, Merged, Part, combine, installed, registry

PARTS = [Part("a", {"secret": 4711}), Part("b", {"secret": 4712})]


def test_a_strategy_is_called_with_the_params():
    called = combine(
        {"own": lambda parts, params: Merged((len(parts), params["x"]))},
        Merge(strategy="own", params={"x": 3}),
        PARTS,
    )
    assert called == Merged((2, 3))


@pytest.mark.parametrize(
    "strategy",
    [
        lambda parts, params: parts[0].output["none"],
        lambda parts, params: {"not": "Merged"},
        lambda parts, params: sys.exit(471),
    ],
)
def test_a_strategy_that_fails_is_named_and_quotes_nothing(strategy):
    failure = combine({"own": strategy}, Merge(strategy="own"), PARTS)
    assert isinstance(failure, Failure)
    assert failure.code == "merge_failed"
    assert "'own'" in failure.message
    assert "471" not in failure.message


def endless():
    inside = ["x" * 1_000]
    for _ in range(12):
        inside = [inside] * 10
    return inside


@pytest.mark.parametrize(
    ("merged", "code"),
    [
        (Merged(endless()), "result_too_large"),
        (Merged("x" * 2**21), "result_too_large"),
        (Merged(1, 0.5, ("x" * 2**21,)), "result_too_large"),
        (Merged(1, 1.5), "merge_failed"),
        (Merged(1, float("nan")), "merge_failed"),
        (Merged(1, "sure"), "merge_failed"),
        (Merged(1, None, ["w"]), "merge_failed"),
        (Merged(1, None, (1,)), "merge_failed"),
    ],
)
def test_what_cannot_be_written_is_refused_before_it_is_tried(merged, code):
    failure = combine({"own": lambda parts, params: merged}, Merge(strategy="own"), PARTS)
    assert isinstance(failure, Failure)
    assert failure.code == code
    assert "'own'" in failure.message


def test_an_unknown_strategy_is_named_with_those_there_are():
    failure = combine(BUILT_IN, Merge(strategy="guess"), PARTS)
    assert isinstance(failure, Failure)
    assert "'guess'" in failure.message
    assert "weighted_fusion" in failure.message


def test_entry_points_add_strategies_but_never_replace_ours(monkeypatch, caplog):
    points = [
        EntryPoint("mine", "streams.merge.collect:collect", registry.GROUP),
        EntryPoint("collect", "streams.merge.deep_merge:deep_merge", registry.GROUP),
        EntryPoint("broken", "streams.merge.nowhere:nothing", registry.GROUP),
    ]
    monkeypatch.setattr(registry, "entry_points", lambda group: points)
    found = installed()
    assert found["mine"] is BUILT_IN["collect"]
    assert found["collect"] is BUILT_IN["collect"]
    assert "broken" not in found
    assert "built in" in caplog.text
    assert "nowhere" in caplog.text
