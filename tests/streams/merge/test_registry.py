from __future__ import annotations

import os
import subprocess
import sys
import time
from importlib.metadata import EntryPoint

import numpy as np
import pytest

from schemas.messages import Failure, Merge
from streams.merge import BUILT_IN, Merged, Part, combine, guard, installed, registry, watch
from tests.helpers.docker import ROOT

PARTS = [Part("a", {"secret": 4711}), Part("b", {"secret": 4712})]


def throw(error):
    raise error


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
        lambda parts, params: throw(KeyboardInterrupt("471")),
        lambda parts, params: throw(BaseException("471")),
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
        (Merged("x" * 2**25), "result_too_large"),
        (Merged(1, 0.5, ("x" * 2**25,)), "merge_failed"),
        (Merged(1, 0.5, ("x",) * 2**16), "merge_failed"),
        (Merged(1, True), "merge_failed"),
        (Merged(1, 1.5), "merge_failed"),
        (Merged(1, float("nan")), "merge_failed"),
        (Merged(1, "sure"), "merge_failed"),
        (Merged(1, None, ["w"]), "merge_failed"),
        (Merged(1, None, (1,)), "merge_failed"),
        (Merged({1: 2}), "merge_failed"),
        (Merged({"a": {1, 2}}), "merge_failed"),
        (Merged(2**70), "merge_failed"),
        (Merged("\ud800"), "merge_failed"),
        (Merged([[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]), "merge_failed"),
    ],
)
def test_what_cannot_be_written_is_refused_before_it_is_tried(merged, code):
    failure = combine({"own": lambda parts, params: merged}, Merge(strategy="own"), PARTS)
    assert isinstance(failure, Failure)
    assert failure.code == code
    assert "'own'" in failure.message


def test_a_confidence_of_numpy_is_a_number():
    merged = combine({"own": lambda parts, params: Merged(1, np.float64(0.25))}, Merge(strategy="own"), PARTS)
    assert type(merged.confidence) is float
    assert merged == Merged(1, 0.25)


def test_a_strategy_cannot_change_what_others_hold():
    def vandal(parts, params):
        parts[0].output["secret"] = params["given"].pop()
        return Merged(parts[0].output)

    given = Merge(strategy="own", params={"given": [0]})
    assert combine({"own": vandal}, given, PARTS) == Merged({"secret": 0})
    assert PARTS[0].output == {"secret": 4711}
    assert given.params == {"given": [0]}


def spins(parts, params):
    while True:
        pass


def catches_errors(parts, params):
    while True:
        try:
            len(parts)
        except Exception:  # noqa: BLE001 - as users write it
            len(params)


def tries_again(parts, params):
    tries = 0
    while True:
        tries += 1
        try:
            while tries < 3:
                len(parts)
        except:  # noqa: E722 - the strategy of somebody who knows no better
            continue


@pytest.mark.parametrize("strategy", [spins, catches_errors, tries_again])
def test_a_strategy_that_does_not_end_is_ended_and_named(monkeypatch, strategy):
    monkeypatch.setattr(guard, "LONGEST_S", 0.05)
    failure = combine({"own": strategy}, Merge(strategy="own"), PARTS)
    assert failure.code == "merge_failed"
    assert "'own' took longer" in failure.message
    before = time.monotonic()
    while time.monotonic() < before + 0.2:  # whoever comes next is left alone
        assert combine({"own": lambda parts, params: Merged(1)}, Merge(strategy="own"), PARTS) == Merged(1)


def test_a_strategy_that_ends_in_time_by_a_hair_harms_nobody(monkeypatch):
    """Whenever the time is over, it is over for the strategy alone."""
    monkeypatch.setattr(watch, "LOOK_S", 0.0)
    monkeypatch.setattr(guard, "LONGEST_S", 0.0)
    outcomes = set()
    for turns in range(3000):
        strategy = {"own": lambda parts, params, turns=turns: Merged(sum(1 for _ in range(turns)))}
        outcomes.add(type(combine(strategy, Merge(strategy="own"), PARTS)))
    assert outcomes == {Merged, Failure}


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


def test_a_package_that_is_installed_brings_its_strategies(tmp_path):
    (tmp_path / "rankers.py").write_text(
        "from streams.merge import Merged\n"
        "NOT_ONE = 5\n"
        "def last(parts, params):\n"
        "    return Merged(max(parts, key=lambda part: part.step).output)\n"
    )
    about = tmp_path / "rankers-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: rankers\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[edgeway.merge]\nlast = rankers:last\nodd = rankers:NOT_ONE\n")
    code = (
        "from schemas.messages import Merge\n"
        "from streams.merge import Part, combine, installed\n"
        "found = installed()\n"
        "print('odd' in found, combine(found, Merge(strategy='last'), [Part('b', 2), Part('a', 1)]).output)\n"
    )
    env = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "False 2\n"
    assert "odd (rankers:NOT_ONE) is no function" in done.stderr
