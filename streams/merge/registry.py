"""Merge strategies by name: ours, those that installed packages offer under the entry point group
`edgeway.merge`, and those of the modules that the rules name."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import entry_points
from types import MappingProxyType
from typing import TypeGuard

from schemas.messages import Failure, Merge
from schemas.values import least_size
from streams.merge.collect import collect
from streams.merge.deep_merge import deep_merge
from streams.merge.first_complete import first_complete
from streams.merge.guard import LONGEST_S, Overrun, flaw, guarded
from streams.merge.highest_confidence import highest_confidence
from streams.merge.majority_vote import majority_vote
from streams.merge.own import MergeError, load_merges
from streams.merge.parts import Merged, Part, Strategy
from streams.merge.priority_override import priority_override
from streams.merge.weighted_fusion import weighted_fusion
from streams.strangers import RAISED

GROUP = "edgeway.merge"
MOST_WARNED = 32 * 2**10
MOST_BYTES = 16 * 2**20
"""The largest output that is made of the parts; what is too large for a record travels by claim check."""
BUILT_IN: Mapping[str, Strategy] = MappingProxyType(
    {
        "collect": collect,
        "deep_merge": deep_merge,
        "first_complete": first_complete,
        "highest_confidence": highest_confidence,
        "majority_vote": majority_vote,
        "priority_override": priority_override,
        "weighted_fusion": weighted_fusion,
    }
)
log = logging.getLogger(__name__)


def installed(modules: Iterable[str] = ()) -> Mapping[str, Strategy]:
    """Our strategies, those of installed packages and those of `modules`, which go before packages. Ours
    cannot be replaced; one of a package that cannot be imported is left out and logged, and a request that
    needs it fails by name. Imports modules: call it at start.

    Raises:
        MergeError: one of `modules` cannot be used, or has a strategy of a name of ours.
    """
    found: dict[str, Strategy] = {}
    for point in entry_points(group=GROUP):
        if point.name in BUILT_IN:
            log.warning("merge strategy %s of %s ignored: the name is built in", point.name, point.value)
            continue
        try:
            strategy = point.load()
        except RAISED as error:
            log.error("merge strategy %s (%s) not loaded: %s", point.name, point.value, error)
            continue
        if callable(strategy):
            found[point.name] = strategy
        else:
            log.error("merge strategy %s (%s) is no function and is left out", point.name, point.value)
    own = load_merges(modules)
    for name in sorted(own.keys() & BUILT_IN.keys()):
        raise MergeError(f"merges: the strategy {name!r} is built in; give yours another name")
    return MappingProxyType({**found, **own, **BUILT_IN})


def combine(strategies: Mapping[str, Strategy], merge: Merge, parts: Sequence[Part]) -> Merged | Failure:
    """The parts merged, or a `merge_failed` failure that names the strategy. Never raises; `parts` is not
    empty."""
    strategy = strategies.get(merge.strategy)
    if strategy is None:
        known = ", ".join(sorted(strategies))
        return Failure(
            code="merge_failed", message=f"no merge strategy {merge.strategy!r}; there are: {known}"
        )
    ours = BUILT_IN.get(merge.strategy) is strategy
    try:
        merged: object = strategy(parts, merge.params) if ours else guarded(strategy, parts, merge.params)
    except Overrun:
        log.error("merge strategy %s took longer than %.1f s", merge.strategy, LONGEST_S)
        return _failed(merge, f"took longer than {LONGEST_S:g} s on {len(parts)} parts")
    except RAISED as error:
        log.warning("merge strategy %s raised %s", merge.strategy, type(error).__name__)
        return _failed(merge, f"raised {type(error).__name__} on {len(parts)} parts")
    if not isinstance(merged, Merged):  # mypy trusts the annotation of a stranger; we do not
        return _failed(merge, f"returned {type(merged).__name__} instead of Merged")
    return _objection(merge, merged, ours) or (merged if ours else _plain(merged))


def _objection(merge: Merge, merged: Merged, ours: bool) -> Failure | None:
    """What keeps `merged` from being written. Looked for before an encoder works on it: one list that is held
    a million times is small in memory and ended the process while it was written."""
    confidence: object = merged.confidence
    if confidence is not None and not (_is_number(confidence) and 0 <= confidence <= 1):
        return _failed(merge, "returned a confidence that is no number from 0 to 1")
    warnings: object = merged.warnings
    if not (isinstance(warnings, tuple) and all(isinstance(text, str) for text in warnings)):
        return _failed(merge, "returned warnings that are no tuple of texts")
    if least_size(warnings, MOST_WARNED) > MOST_WARNED:
        return _failed(merge, f"returned warnings of more than {MOST_WARNED} bytes")
    if least_size((merged.output, warnings), MOST_BYTES) > MOST_BYTES:
        what = f"merge strategy {merge.strategy!r} returned more than {MOST_BYTES} bytes; let it return less"
        return Failure(code="result_too_large", message=what)
    why = None if ours else flaw(merged)
    return None if why is None else _failed(merge, why)


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _plain(merged: Merged) -> Merged:
    """With a confidence that can be written: one of numpy's is a float, and no encoder takes it."""
    sure = merged.confidence
    return merged if sure is None or type(sure) is float else replace(merged, confidence=float(sure))


def _failed(merge: Merge, what: str) -> Failure:
    return Failure(code="merge_failed", message=f"merge strategy {merge.strategy!r} {what}")
