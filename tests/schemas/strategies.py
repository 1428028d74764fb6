"""Hypothesis strategies for every struct, derived from its fields, so that a new field is tested unasked."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec
from hypothesis import strategies as st
from msgspec import inspect

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
INTEGERS = st.integers(-(2**63), 2**64 - 1)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
JSON_SCALARS = st.none() | st.booleans() | INTEGERS | FINITE | TEXT
NUMBER_LISTS = st.lists(FINITE, min_size=16, max_size=40)


def values(scalars: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Free-form values over `scalars`."""
    return st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
        max_leaves=12,
    )


JSON_VALUES = values(JSON_SCALARS | NUMBER_LISTS)
VALUES = values(JSON_SCALARS | st.binary(max_size=40) | NUMBER_LISTS)


@cache
def structs(kind: type[msgspec.Struct], free: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Instances of `kind`, whose free-form values come from `free`; fields with defaults are left out at
    times.
    """
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    needed = {f.name: _field(f.type, free) for f in info.fields if f.required}
    others = {f.name: _field(f.type, free) for f in info.fields if not f.required and f.name != "v"}
    return st.fixed_dictionaries(needed, optional=others).map(lambda given: kind(**given))


def _field(kind: Any, free: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    match kind:
        case inspect.AnyType():
            return free
        case inspect.NoneType():
            return st.none()
        case inspect.BoolType():
            return st.booleans()
        case inspect.IntType():
            low = -(2**63) if kind.ge is None else kind.ge
            return st.integers(low, 2**63 - 1 if kind.le is None else kind.le)
        case inspect.FloatType():
            return st.floats(kind.ge, kind.le, allow_nan=False, allow_infinity=False)
        case inspect.StrType(pattern=str() as pattern):
            return st.from_regex(pattern.removesuffix("(?!\\n)").replace("$", r"\Z"), fullmatch=True)
        case inspect.StrType():
            return st.text(
                st.characters(exclude_categories=["Cs"]),
                min_size=kind.min_length or 0,
                max_size=min(kind.max_length or 20, 20),
            )
        case inspect.LiteralType():
            return st.sampled_from(kind.values)
        case inspect.StructType():
            return structs(kind.cls, free)
        case inspect.UnionType():
            return st.one_of([_field(inner, free) for inner in kind.types])
        case inspect.VarTupleType():
            return st.lists(_field(kind.item_type, free), max_size=3).map(tuple)
        case inspect.DictType():
            return st.dictionaries(_field(kind.key_type, free), _field(kind.value_type, free), max_size=3)
    raise AssertionError(f"no strategy for {kind}")
