"""Merge strategies: pure functions from the answered parts of a request to its one output."""

from streams.merge.parts import Merged, Part, Strategy
from streams.merge.registry import BUILT_IN, GROUP, combine, installed

__all__ = ["BUILT_IN", "GROUP", "Merged", "Part", "Strategy", "combine", "installed"]
