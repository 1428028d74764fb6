"""Merges of the rules that could never work are found before a request finds out."""

from __future__ import annotations

import json

import pytest

from schemas.rules import Rules, parse_rules
from streams.merge.check import PARAMS, wrong_merges
from streams.merge.registry import BUILT_IN


def rules(strategy: str, **params: object) -> Rules:
    task = {
        "steps": [{"name": "a", "capability": "x/a"}],
        "merge": {"strategy": strategy, "params": params},
    }
    return parse_rules(json.dumps({"tasks": {"t": task}, "builtin": False}).encode())


def test_each_strategy_of_ours_has_its_params_listed() -> None:
    assert PARAMS.keys() == BUILT_IN.keys()
    assert wrong_merges(parse_rules(b"{}"), BUILT_IN) == [], "the templates are sound"
    right = {"key": "x", "keys": ["x"], "labels": ["x"], "sides": ["local", "cloud"]}
    for name, params in PARAMS.items():
        assert wrong_merges(rules(name, **{param: right[param] for param in params}), BUILT_IN) == []


def test_an_unknown_strategy_is_named_with_those_there_are() -> None:
    (wrong,) = wrong_merges(rules("weighted_fusoin"), BUILT_IN)
    line = str(wrong)
    assert (wrong.task, wrong.below) == ("t", ("merge", "strategy"))
    assert "task t: no merge strategy 'weighted_fusoin'; did you mean 'weighted_fusion'?" in line
    assert all(name in line for name in BUILT_IN)
    assert wrong_merges(rules("mine", any=1), {**BUILT_IN, "mine": BUILT_IN["collect"]}) == []


def test_params_that_nobody_reads_are_named() -> None:
    (wrong,) = wrong_merges(rules("weighted_fusion", label=["x"]), BUILT_IN)
    assert "no params label; it reads labels" in wrong.why
    assert wrong.below == ("merge", "params", "label")


@pytest.mark.parametrize(
    ("strategy", "params", "why"),
    [
        ("first_complete", {"keys": "total"}, "takes a list of texts as `keys`"),
        ("first_complete", {"keys": 5}, "takes a list of texts as `keys`"),
        ("weighted_fusion", {"labels": [["x"]]}, "takes a list of texts as `labels`"),
        ("majority_vote", {"key": ["label"]}, "takes a text as `key`"),
        ("priority_override", {"sides": "cloud"}, "takes a list of"),
        ("deep_merge", {"sides": ["moon"]}, "takes a list of"),
        ("deep_merge", {"sides": ["local"]}, "takes a list of"),
        ("deep_merge", {"sides": None}, "takes a list of"),
    ],
)
def test_params_of_another_form_are_named(strategy: str, params: dict[str, object], why: str) -> None:
    (wrong,) = wrong_merges(rules(strategy, **params), BUILT_IN)
    assert why in wrong.why
    assert wrong.below == ("merge", "params", next(iter(params)))
