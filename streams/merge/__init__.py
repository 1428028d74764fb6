"""Merge strategies: pure functions from the answered parts of a request to its one output."""

from streams.merge.own import MergeError, load_merges, merge_strategy
from streams.merge.parts import Merged, Part, Strategy
from streams.merge.registry import BUILT_IN, GROUP, combine, installed

__all__ = [
    "BUILT_IN",
    "GROUP",
    "MergeError",
    "Merged",
    "Part",
    "Strategy",
    "combine",
    "installed",
    "load_merges",
    "merge_strategy",
]
