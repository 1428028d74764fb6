"""Strategies that are not ours: called with copies, within a time, and what they give is looked at."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import FrameType
from typing import Any

import msgspec

from schemas.errors import Malformed
from schemas.values import MAX_DEPTH, check_value
from streams.merge.parts import Merged, Part, Strategy

LONGEST_S = 1.0
"""How long a strategy may take; the aggregator does nothing else meanwhile."""


class Overrun(BaseException):
    """It took longer than LONGEST_S. No Exception: a loop around `except Exception` would go on for ever."""


def guarded(strategy: Strategy, parts: Sequence[Part], params: Mapping[str, Any]) -> Any:
    """What `strategy` makes of copies of the parts, so that it cannot change what other plans hold.

    Python code is ended after LONGEST_S, between two of its lines. One call of C that does not return (an
    endless regular expression, `sleep`) cannot be ended from inside.

    Raises:
        Overrun: it took longer.
        Exception: whatever the strategy raises.
    """
    copies = [replace(part, output=copied(part.output)) for part in parts]
    until = time.monotonic() + LONGEST_S

    def look(frame: FrameType, event: str, given: Any) -> Any:
        if time.monotonic() > until:
            raise Overrun
        return look

    before = sys.gettrace()
    if before is not None:  # a debugger or a measurement of coverage: whoever traces also looks on
        return strategy(copies, copied(dict(params)))
    sys.settrace(look)
    try:
        return strategy(copies, copied(dict(params)))
    finally:
        sys.settrace(before)


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
