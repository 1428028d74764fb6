"""Whether inputs can fit a card's `input_schema`: the part of JSON Schema that can be told in microseconds.

Read are `type` (a name or a list of names), `required`, `properties`, `enum`, `const`, `minLength`,
`maxLength`, `minItems`, `maxItems`, `minimum`, `maximum` of the inputs and of each input, and `allOf`. All
else is left to the worker, which answers `bad_input`. Bytes pass for a string and for an array: tensors and
images travel so.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any, NamedTuple

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str, bytes),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "array": (list, tuple, bytes),
    "object": (dict,),
    "null": (type(None),),
}
_MAX_KEPT = 1024

Test = Callable[[Any], bool]


class Shape(NamedTuple):
    """A schema of an object, ready to use: the names it must have, and for each name what its value must
    pass."""

    required: tuple[str, ...]
    properties: tuple[tuple[str, tuple[Test, ...]], ...]

    def misfit(
        self, inputs: Mapping[str, Any], params: Mapping[str, Any], later: Container[str] = ()
    ) -> str | None:
        """The name of the first input that cannot fit, None where all do as far as they are known.

        A worker takes from `params` what `inputs` do not have. Names in `later` come with the outputs of
        earlier steps.
        """
        for name in self.required:
            if name not in inputs and name not in params and name not in later:
                return name
        for name, tests in self.properties:
            if name in inputs:
                value = inputs[name]
            elif name in params and name not in later:
                value = params[name]
            else:
                continue
            for test in tests:
                if not test(value):
                    return name
        return None


_kept: dict[int, tuple[dict[str, Any], Shape]] = {}


def shape_of(schema: dict[str, Any]) -> Shape:
    """The Shape of `schema`, made once for each schema object."""
    known = _kept.get(id(schema))
    if known is not None and known[0] is schema:
        return known[1]
    if len(_kept) >= _MAX_KEPT:
        # A beat brings new objects every two seconds; those of old ones are of no use.
        _kept.clear()
    shape = compiled(schema)
    _kept[id(schema)] = (schema, shape)
    return shape


def compiled(schema: Mapping[str, Any]) -> Shape:
    """The Shape of a schema; what cannot be understood demands nothing."""
    required: dict[str, None] = {}
    tests: dict[str, list[Test]] = {}
    for part in (schema, *_maps(schema.get("allOf"))):
        names = part.get("required")
        if isinstance(names, list | tuple):
            required.update(dict.fromkeys(name for name in names if isinstance(name, str)))
        properties = part.get("properties")
        if isinstance(properties, Mapping):
            for name, of in properties.items():
                if isinstance(of, Mapping) and (found := _tests(of)):
                    tests.setdefault(name, []).extend(found)
    return Shape(tuple(required), tuple((name, tuple(found)) for name, found in tests.items()))


def _tests(of: Mapping[str, Any]) -> list[Test]:
    found: list[Test] = []
    # A date or a number of many digits is a string to JSON, and something else in msgpack.
    kind = None if "format" in of else of.get("type")
    for test in (_type_test(kind), _choice_test(of), _size_test(of), _range_test(of)):
        if test is not None:
            found.append(test)
    for part in _maps(of.get("allOf")):
        found += _tests(part)
    return found


def _type_test(said: Any) -> Test | None:
    names = [said] if isinstance(said, str) else said
    if not isinstance(names, list | tuple) or not all(name in _TYPES for name in names):
        return None
    kinds = tuple({kind for name in names for kind in _TYPES[name]})
    booleans = "boolean" in names
    floats = "integer" in names and "number" not in names

    def test(value: Any) -> bool:
        if type(value) is bool:
            return booleans
        if isinstance(value, kinds):
            return True
        return floats and type(value) is float and value.is_integer()

    return test


def _choice_test(of: Mapping[str, Any]) -> Test | None:
    choices = [of["const"]] if "const" in of else of.get("enum")
    if not isinstance(choices, list | tuple):
        return None
    # 1 == True in Python, and not in JSON.
    pairs = [(type(choice), choice) for choice in choices]
    return lambda value: (type(value), value) in pairs or (type(value) is float and value in choices)


def _size_test(of: Mapping[str, Any]) -> Test | None:
    text = _bounds(of, "minLength", "maxLength")
    items = _bounds(of, "minItems", "maxItems")
    if text is None and items is None:
        return None

    def test(value: Any) -> bool:
        bounds = text if isinstance(value, str) else items if isinstance(value, list | tuple) else None
        return bounds is None or bounds[0] <= len(value) <= bounds[1]

    return test


def _range_test(of: Mapping[str, Any]) -> Test | None:
    bounds = _bounds(of, "minimum", "maximum")
    if bounds is None:
        return None
    least, most = bounds
    return lambda value: type(value) not in (int, float) or least <= value <= most


def _bounds(of: Mapping[str, Any], low: str, high: str) -> tuple[float, float] | None:
    least, most = of.get(low), of.get(high)
    known = [bound for bound in (least, most) if isinstance(bound, int | float)]
    if not known:
        return None
    return (
        least if isinstance(least, int | float) else float("-inf"),
        most if isinstance(most, int | float) else float("inf"),
    )


def _maps(value: Any) -> Sequence[Mapping[str, Any]]:
    return [part for part in value if isinstance(part, Mapping)] if isinstance(value, list | tuple) else ()
