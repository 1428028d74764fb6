from __future__ import annotations

from streams.merge import BUILT_IN, Part

LOCAL = Part("gps", {"valid": True, "level": 1}, 0.99, side="local")
CLOUD = Part("level", {"level": 4}, 0.7, side="cloud")


def test_priority_override_puts_cloud_over_local():
    merged = BUILT_IN["priority_override"]([LOCAL, CLOUD], {})
    assert merged.output == {"valid": True, "level": 4}
    assert merged.confidence == 0.7


def test_priority_override_takes_sides_and_priorities_from_the_rules():
    assert BUILT_IN["priority_override"]([LOCAL, CLOUD], {"sides": ["local", "cloud"]}).output["level"] == 1
    high = Part("x", {"level": 9}, 0.1, priority=7, side="local")
    merged = BUILT_IN["priority_override"]([LOCAL, CLOUD, high], {})
    assert merged.output == {"valid": True, "level": 9}


def test_priority_override_breaks_ties_by_confidence_then_name():
    parts = [Part("b", {"k": "b"}, 0.5), Part("a", {"k": "a"}, 0.5), Part("c", {"k": "c"}, 0.4)]
    assert BUILT_IN["priority_override"](parts, {}).output == {"k": "a"}
    assert BUILT_IN["priority_override"]([*parts, Part("d", {"k": "d"}, 0.6)], {}).output == {"k": "d"}


def test_a_part_that_shows_nowhere_does_not_lower_the_confidence():
    hidden = Part("z", {"level": 0}, 0.01, priority=-5)
    assert BUILT_IN["priority_override"]([CLOUD, hidden], {}).confidence == 0.7


def test_priority_override_replaces_what_is_no_map_whole():
    parts = [Part("a", "low", 0.9, priority=1), Part("b", "high", 0.2, priority=2)]
    assert BUILT_IN["priority_override"](parts, {}).output == "high"


def test_collect():
    merged = BUILT_IN["collect"]([Part("a", 1, 0.9), Part("b", None, 0.8)], {})
    assert merged.output == {"a": 1, "b": None}
    assert merged.confidence == 0.8


def test_highest_confidence():
    parts = [Part("a", "unsure"), Part("b", "sure", 0.1), Part("c", "surer", 0.2)]
    merged = BUILT_IN["highest_confidence"](parts, {})
    assert (merged.output, merged.confidence) == ("surer", 0.2)


def test_majority_vote_by_weight_and_by_key():
    parts = [Part("a", {"l": 1, "n": 1}), Part("b", {"l": 2, "n": 2}), Part("c", {"l": 2, "n": 3}, 0.5)]
    merged = BUILT_IN["majority_vote"](parts, {"key": "l"})
    assert merged.output == {"l": 2, "n": 2}
    assert merged.confidence == 2 / 3
    heavy = Part("a", "x", weight=3.0)
    assert BUILT_IN["majority_vote"]([heavy, Part("b", "y"), Part("c", "y")], {}).output == "x"


def test_first_complete():
    parts = [
        Part("a", {"t": None}, priority=3),
        Part("b", {"t": 1, "u": 2}, priority=2),
        Part("c", {"t": 1}, priority=1),
    ]
    assert BUILT_IN["first_complete"](parts, {"keys": ["t"]}).output == {"t": 1, "u": 2}
    merged = BUILT_IN["first_complete"](parts, {"keys": ["absent"]})
    assert merged.output == {"t": None}
    assert merged.warnings


def test_deep_merge():
    parts = [
        Part("a", {"x": {"p": 1, "q": [1]}, "y": 1}, priority=2),
        Part("b", {"x": {"q": [2], "r": 3}, "y": {"z": 1}}, priority=1),
    ]
    assert BUILT_IN["deep_merge"](parts, {}).output == {"x": {"p": 1, "q": [1], "r": 3}, "y": 1}
