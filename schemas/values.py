"""What a free-form value (inputs, params, output) may hold: None, bool, int, float, str, bytes, list and
dict[str].
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from typing import Any

import msgspec

from schemas.errors import Malformed

MAX_DEPTH = 32
"""Containers inside each other in a value that comes from outside."""

INNER_DEPTH = MAX_DEPTH + 8
"""The same in Edgeway's own records, which put what they were given a few levels deeper."""

_MAX_CONTAINERS = 2**17
_MAX_VALUES = 2**20
# A list that holds another one ten times, ten levels deep, is small in memory and endless once written. No
# record has room for more values than these: each takes a byte.

_MAX_OPEN = 2 * INNER_DEPTH
_MAX_PENDING = 2**17

_SCALARS = frozenset((type(None), bool, int, float, str, bytes))
_NUMBERS = frozenset((int, float))
_STR = frozenset((str,))
_SIZED = frozenset((dict, list, tuple))
_FLAT = frozenset((type(None), bool, int, float))


def check_value(value: Any, what: str, depth: int = MAX_DEPTH) -> None:
    """Refuses what no reader could decode again. A tuple counts as a list.

    Raises:
        Malformed: another type, a key that is no string, deeper than `depth`.
    """
    if type(value) is dict and all(map(_is_plain, value.values())):
        # One map of scalars and short flat lists: nearly every value, and four times as fast.
        if _STR.issuperset(map(type, value)):
            return
        raise Malformed(f"{what} has a key that is no string")
    if type(value) not in _SIZED:
        _nested(value, what)
        return
    level = [value]
    values = 0
    for _ in range(depth):
        deeper: list[Any] = []
        for item in level:
            found = _nested(item, what)
            # Counted as they come: a whole level of a value that holds itself fills the memory.
            values += len(item)
            if values > _MAX_VALUES:
                raise Malformed(f"{what} holds more than {_MAX_VALUES} values")
            if found:
                deeper += found
                if len(deeper) > _MAX_CONTAINERS:
                    raise Malformed(f"{what} holds more than {_MAX_CONTAINERS} lists and maps")
        if not deeper:
            return
        level = deeper
    raise Malformed(f"{what} nests deeper than {depth} levels")


def least_size(value: Any, limit: int) -> int:
    """A lower bound of the bytes that `value` takes in msgpack; counting stops above `limit`. A value that
    holds itself is above any.

    One text that is held a million times is small in memory, and no encoder stops while it writes.
    """
    total = 1
    pending = [value]
    for _ in range(_MAX_PENDING):
        if not pending or total > limit:
            return total
        item = pending.pop()
        kind = type(item)
        if kind is str or kind is bytes:
            total += len(item)
        elif kind is dict:
            total += 2 * len(item)
            pending += item
            pending += item.values()
        elif kind is list or kind is tuple:
            total += len(item)
            if not _all_numbers(item):
                pending += item
        if len(pending) > _MAX_PENDING:
            break
    return _least(value, limit, {}, 0)


def _least(item: Any, limit: int, known: dict[int, int], depth: int) -> int:
    """The same, each container looked at once, however often it is held: counting the places of one that
    held itself kept an event loop for ten seconds. `known` has their sizes; what lies deeper than in any
    record counts 1."""
    kind = type(item)
    if kind is str or kind is bytes:
        return 1 + len(item)
    if kind not in _SIZED or depth > _MAX_OPEN:
        return 1
    size = known.get(id(item))
    if size is not None:
        return size
    known[id(item)] = limit + 1  # met again before it is known, it holds itself
    total = 1
    for children in (item, item.values()) if kind is dict else (item,):
        for child in children:
            total += 1 if type(child) in _FLAT else _least(child, limit, known, depth + 1)
            if total > limit:
                break
    known[id(item)] = total
    return total


def _is_plain(item: Any) -> bool:
    kind = type(item)
    return kind in _SCALARS or (kind is list and len(item) < 16 and _SCALARS.issuperset(map(type, item)))


def _nested(item: Any, what: str) -> list[Any]:
    """The containers in `item`, and whatever else is no scalar."""
    kind = type(item)
    if kind is dict:
        if not _STR.issuperset(map(type, item)):
            raise Malformed(f"{what} has a key that is no string")
        children = item.values()
    elif kind is list or kind is tuple:
        if _all_numbers(item):
            return []
        children = item
    elif kind in _SCALARS:
        return []
    else:
        raise Malformed(
            f"{what} holds a {kind.__name__}; use null, bool, int, float, str, bytes, list or dict"
        )
    if _SCALARS.issuperset(map(type, children)):
        return []
    return [child for child in children if type(child) not in _SCALARS]


def _all_numbers(items: Any) -> bool:
    # sum() refuses what is no number, eight times as fast as asking each for its type: 784 pixels in 5 us.
    if len(items) < 16 or type(items[0]) not in _NUMBERS:
        return False
    try:
        return type(sum(items)) in _NUMBERS
    except (TypeError, OverflowError):
        return False


def all_finite(value: Any) -> bool:
    """Whether no float in `value` (builtins and structs) is NaN or infinite.

    Raises:
        Malformed: more values, or deeper, than any record can be.
    """
    return all(isfinite(leaf) for leaf in _leaves(value) if isinstance(leaf, float))


def all_fit(value: Any) -> bool:
    """Whether every integer in `value` (builtins and structs) has 64 bits, with or without sign.

    Raises:
        Malformed: as `all_finite`.
    """
    return all(-(2**63) <= leaf < 2**64 for leaf in _leaves(value) if isinstance(leaf, int))


def _leaves(value: Any) -> Iterator[Any]:
    pending = [iter((value,))]
    seen = 0
    while pending:
        for item in pending[-1]:
            # An answer of a user's function comes here unchecked. One that held itself blocked its worker.
            seen += 1
            if seen > _MAX_VALUES or len(pending) > _MAX_OPEN:
                raise Malformed(
                    f"a value holds itself, nests deeper than {_MAX_OPEN}, or holds more than {_MAX_VALUES}"
                )
            if isinstance(item, dict):
                pending.append(iter(item.values()))
                break
            if isinstance(item, msgspec.Struct):
                pending.append(iter(msgspec.structs.astuple(item)))
                break
            if isinstance(item, list | tuple):
                pending.append(iter(item))
                break
            yield item
        else:
            pending.pop()
