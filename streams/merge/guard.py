"""Strategies that are not ours: called with copies, within a time, and what they give is looked at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from schemas.errors import Malformed
from schemas.values import MAX_DEPTH, check_value
from streams.merge.parts import Merged, Part, Strategy
from streams.merge.watch import Overrun, Watch

__all__ = ["LONGEST_S", "Overrun", "flaw", "guarded"]

LONGEST_S = 1.0
"""How long a strategy may take; the aggregator does nothing else meanwhile."""
_watch = Watch()


def guarded(strategy: Strategy, parts: Sequence[Part], params: Mapping[str, Any]) -> Any:
    """What `strategy` makes of copies of the parts, so that it cannot change what other plans hold.

    It is ended after LONGEST_S, between two instructions. One call of C that does not return (an endless
    regular expression) cannot be ended from inside, nor can a loop that catches whatever is thrown at it.

    Raises:
        Overrun: it took longer.
        BaseException: whatever the strategy raises.
    """
    copies = [replace(part, output=copied(part.output)) for part in parts]
    return _watch.call(lambda: strategy(copies, copied(dict(params))), LONGEST_S)


def copied(value: Any) -> Any:
    """`value` with its maps and lists made anew."""
    if isinstance(value, dict):
        return {key: copied(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [copied(inner) for inner in value]
    return value


def flaw(merged: Merged) -> str | None:
    """Why no record can hold the output of a strategy, in words that quote nothing; None where one can. Its
    least size is known to be bounded."""
    try:
        check_value(merged.output, "output", MAX_DEPTH)
        msgspec.msgpack.encode((merged.output, merged.warnings))
    except Malformed as error:
        return f"returned an output that cannot be written: {error}"
    except (msgspec.MsgspecError, ValueError, TypeError, OverflowError, RecursionError) as error:
        return f"returned what cannot be written ({type(error).__name__})"
    return None
