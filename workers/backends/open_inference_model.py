"""What a server tells of a model, and what the options make of it: pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from workers.backends.open_inference_codec import DTYPES
from workers.backends.open_inference_rows import Port
from workers.errors import LoadError

_WORDS = frozenset({"name", "datatype", "shape"})


class Told(NamedTuple):
    """A tensor as the server tells it: the whole shape, -1 for any size."""

    name: str
    datatype: str
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.name} {self.datatype}{list(self.shape)}"


class Model(NamedTuple):
    """A model and its server. `inputs` and `outputs` are empty where the server does not tell them;
    `extensions` are those of the server.
    """

    server: str
    extensions: tuple[str, ...]
    inputs: tuple[Told, ...]
    outputs: tuple[Told, ...]


class Plan(NamedTuple):
    """How a model is asked: its inputs, how many rows share a call at most, and which outputs are wanted
    (none: all).
    """

    ports: tuple[Port, ...]
    most_rows: int
    outputs: tuple[str, ...]


class Wanted(NamedTuple):
    """The options that speak of tensors. `inputs` maps a capability's input to a tensor's name, or to some of
    its `name`, `datatype` and `shape` (without the batch axis), or to None: a tensor of that name is left
    out. Empty: each tensor has an input of its name. `batched`: the first axis of all tensors counts rows.
    """

    inputs: Mapping[str, Any]
    outputs: tuple[str, ...]
    batched: bool
    max_batch: int


def plan(model: Model, wanted: Wanted) -> Plan:
    """The plan.

    Raises:
        LoadError: the model lacks what is wanted, or it is not known well enough; the message says what the
            server offers.
    """
    if not wanted.inputs and not model.inputs:
        raise LoadError(
            "the server does not tell the model's inputs; give them as "
            'inputs: {"INPUT": {"name": "TENSOR", "datatype": "FP32", "shape": [784]}}'
        )
    asked = wanted.inputs or {told.name: told.name for told in model.inputs}
    ports = [
        _port(source, given, model.inputs, wanted.batched)
        for source, given in asked.items()
        if given is not None
    ]
    names = [port.name for port in ports]
    if len(set(names)) < len(names):
        raise LoadError(f"two inputs go to one tensor: {', '.join(names)}")
    if forgotten := sorted({told.name for told in model.inputs} - set(names) - set(asked)):
        raise LoadError(
            f"nothing goes to the model's {forgotten[0]!r}; {_offer('inputs', model.inputs)}. "
            f'Where it may be left out, say so by inputs: {{"{forgotten[0]}": null}}'
        )
    return Plan(tuple(ports), _most_rows(model, names, wanted), _outputs(model, wanted.outputs))


def _port(source: str, given: Any, offered: Sequence[Told], batched: bool) -> Port:
    words = {"name": given} if isinstance(given, str) else given
    if not isinstance(words, Mapping) or not set(words) <= _WORDS:
        raise LoadError(f"inputs.{source} is no tensor's name and no object of name, datatype and shape")
    name = words.get("name", source)
    shape = _shape(source, words["shape"]) if "shape" in words else None
    told = next((tensor for tensor in offered if tensor.name == name), None)
    if told is None:
        if offered:
            raise LoadError(f"the model has no input {name!r}; {_offer('inputs', offered)}")
        if shape is None or "datatype" not in words:
            raise LoadError(f"the server does not tell {name!r}; inputs.{source} needs datatype and shape")
        return Port(name, source, _known(name, words["datatype"]), shape)
    rest = told.shape[1:] if batched else told.shape
    if words.get("datatype", told.datatype) != told.datatype or not (shape is None or _agrees(shape, rest)):
        raise LoadError(f"inputs.{source} is not what the server tells; {_offer('inputs', offered)}")
    free = tuple(size if size >= 0 else None for size in rest)
    return Port(name, source, _known(name, told.datatype), free if shape is None else shape)


def _known(name: str, datatype: Any) -> str:
    if datatype not in DTYPES:
        raise LoadError(f"input {name!r} is {datatype}; the protocol has {', '.join(DTYPES)}")
    return str(datatype)


def _most_rows(model: Model, names: Sequence[str], wanted: Wanted) -> int:
    if not wanted.batched:
        return 1
    counts = [_rows(told.name, told.shape) for told in model.inputs if told.name in names]
    return min([wanted.max_batch, *(count for count in counts if count is not None)])


def _rows(name: str, whole: tuple[int, ...]) -> int | None:
    """How many rows the first axis takes, None for any number."""
    if whole and whole[0] < 0:
        return None
    if not whole or whole[0] != 1:
        raise LoadError(
            f"input {name!r} has shape {list(whole)}, whose first axis does not count rows; "
            'set "batched": false where the model takes one row a call without such an axis'
        )
    return 1


def _shape(source: str, given: Any) -> tuple[int | None, ...]:
    sound = isinstance(given, list | tuple) and all(type(size) is int and size != 0 for size in given)
    if not sound:
        raise LoadError(f"inputs.{source}.shape is no list of whole numbers; -1 is any size")
    return tuple(size if size > 0 else None for size in given)


def _agrees(shape: Sequence[int | None], told: Sequence[int]) -> bool:
    return len(shape) == len(told) and all(
        mine is None or theirs < 0 or mine == theirs for mine, theirs in zip(shape, told, strict=True)
    )


def _outputs(model: Model, names: tuple[str, ...]) -> tuple[str, ...]:
    known = {told.name for told in model.outputs}
    if known and (missing := sorted(set(names) - known)):
        raise LoadError(f"the model has no output {missing[0]!r}; {_offer('outputs', model.outputs)}")
    return names


def _offer(what: str, tensors: Sequence[Told]) -> str:
    return f"its {what} are {', '.join(str(tensor) for tensor in tensors)}"
