"""The values that a field may have, for error texts: msgspec names only that another one is none of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import inspect

_PLACE = re.compile(r"(.*) - at `(?:key in )?\$(.*)`", re.DOTALL)
_SEGMENT = re.compile(r"\.([A-Za-z_]+)|\[(\d+)\]")


def choices_at(kind: Any, path: Sequence[str | int]) -> tuple[str, ...]:
    """The choices of the field at `path` (field names and indices) below `kind`; () where it has none."""
    return tuple(sorted(set(_values(_below([inspect.type_info(kind)], path)))))


def _below(types: Iterable[inspect.Type], path: Sequence[str | int]) -> list[inspect.Type]:
    found = list(_parts(types))
    for step in path:
        found = list(_parts(below for one in found for below in _step(one, step)))
    return found


def _step(one: inspect.Type, step: str | int) -> list[inspect.Type]:
    if isinstance(one, inspect.StructType):
        return [field.type for field in one.fields if field.encode_name == step]
    if isinstance(one, inspect.VarTupleType | inspect.ListType):
        return [one.item_type]
    if isinstance(one, inspect.DictType):
        return [one.value_type]
    return []


def _parts(types: Iterable[inspect.Type]) -> Iterable[inspect.Type]:
    """Each type, unions and annotations taken apart."""
    for one in types:
        if isinstance(one, inspect.UnionType):
            yield from _parts(one.types)
        elif isinstance(one, inspect.Metadata):
            yield from _parts([one.type])
        else:
            yield one


def _values(types: Iterable[inspect.Type]) -> Iterable[str]:
    for one in types:
        if isinstance(one, inspect.LiteralType):
            yield from map(str, one.values)
        elif isinstance(one, inspect.EnumType):
            yield from (str(member.value) for member in one.cls)


def located(message: str) -> tuple[str, tuple[str | int, ...]]:
    """The words and the path in an error of msgspec; the path ends at the first key that it does not name."""
    found = _PLACE.fullmatch(message)
    if found is None:
        return message, ()
    path: list[str | int] = []
    rest = found.group(2)
    at = 0
    while (segment := _SEGMENT.match(rest, at)) is not None:
        path.append(segment.group(1) if segment.group(1) else int(segment.group(2)))
        at = segment.end()
    return found.group(1), tuple(path)
