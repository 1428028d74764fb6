"""Rows to tensors and tensors to answers: the ready-made pre- and post-processing of the tensor backends."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from schemas.messages import Failure
from workers.backends import Answer, Row, kin_of
from workers.errors import BadInput, BadOutput, BadRows, LoadError

Array = NDArray[Any]
Feeds = dict[str, Array]
Pre = Callable[[Sequence[Row]], Feeds]
"""Rows to the model's inputs by name, first axis = rows. Raises BadRows where some rows are refused."""
Post = Callable[[Feeds, Sequence[Row]], list[Answer]]
"""The model's outputs by name, and the rows, to one answer a row."""

_RAW = np.dtype("<f4")
_ELEMENTS = (int, float, list, tuple, np.number)


@dataclass(frozen=True, slots=True)
class Feed:
    """One input of a model: `name` in the model, `source` in a subtask's inputs, its shape without the batch
    axis.

    At most one dimension may be None (it follows from the number of values).
    """

    name: str
    source: str
    shape: tuple[int | None, ...]
    dtype: str = "float32"

    def __post_init__(self) -> None:
        if self.shape.count(None) > 1:
            raise LoadError(
                f"input {self.name!r} has shape {self.shape}: give a `pre` that knows its dimensions"
            )

    @property
    def fixed(self) -> int:
        """The product of the known dimensions."""
        return int(np.prod([n for n in self.shape if n is not None], dtype=np.int64))


class TensorPre:
    """`inputs.NAME` as a list of numbers (nested or flat) or raw little-endian float32 bytes."""

    def __init__(self, feeds: Sequence[Feed]) -> None:
        self._feeds = tuple(feeds)
        self._ragged = tuple(feed for feed in feeds if None in feed.shape)
        self._plain = tuple(
            (feed, feed.source, feed.fixed * _RAW.itemsize, (-1, *feed.shape), np.dtype(feed.dtype))
            for feed in feeds
            if None not in feed.shape
        )

    def kin(self, row: Row) -> Hashable:
        """Only rows of the same sizes stack; fixed shapes make lists and bytes the same kin."""
        if not self._ragged:
            return kin_of(row)
        return kin_of(row), *(_length(row.inputs.get(feed.source)) for feed in self._ragged)

    def __call__(self, rows: Sequence[Row]) -> Feeds:
        feeds: Feeds = {}
        for feed, source, size, shape, dtype in self._plain:
            values = [row.inputs.get(source) for row in rows]
            if all(type(value) is bytes and len(value) == size for value in values):
                raw = np.frombuffer(b"".join(values), _RAW).reshape(shape)  # type: ignore[arg-type]
                cast = raw if dtype == _RAW else _cast(raw, dtype)
                if np.isfinite(raw).all() and _is_same(raw, cast):
                    feeds[feed.name] = cast
                    continue
            feeds[feed.name] = _stack(feed, values)
        for feed in self._ragged:
            feeds[feed.name] = _stack(feed, [row.inputs.get(feed.source) for row in rows])
        return feeds


def _stack(feed: Feed, values: Sequence[Any]) -> Array:
    """The slow way: value by value, naming those that are refused."""
    stacked: list[Array] = []
    faults: dict[int, str] = {}
    for index, value in enumerate(values):
        try:
            stacked.append(_tensor(feed, value))
        except BadInput as error:
            faults[index] = str(error)
    if faults:
        raise BadRows(faults)
    return np.stack(stacked)


def _tensor(feed: Feed, value: Any) -> Array:
    """One row's tensor.

    Raises:
        BadInput: absent, empty, not numbers, of another size, or not finite.
    """
    flat = _numbers(feed.source, value)
    fixed = feed.fixed
    free = None in feed.shape
    if flat.size == 0 or (flat.size % fixed if free else flat.size != fixed):
        wanted = f"a multiple of {fixed}" if free else str(fixed)
        raise BadInput(f"inputs.{feed.source} has {flat.size} numbers; give {wanted}")
    cast = _cast(flat, np.dtype(feed.dtype))
    if not (np.isfinite(flat).all() and np.isfinite(cast).all()):
        raise BadInput(f"inputs.{feed.source} holds NaN or an infinity, or a number beyond {feed.dtype}")
    if not _is_same(flat, cast):
        raise BadInput(f"inputs.{feed.source} holds a fraction, or a number beyond {feed.dtype}")
    return cast.reshape([-1 if n is None else n for n in feed.shape])


def _cast(flat: Array, dtype: np.dtype[Any]) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):
        return flat.astype(dtype)


def _is_same(flat: Array, cast: Array) -> bool:
    """Whether whole numbers stayed what they were: 300 is no uint8, and 1.5 no int64."""
    if cast.dtype.kind == "f":
        return bool(np.isfinite(cast).all())
    return bool((cast == flat).all())


def _numbers(source: str, value: Any) -> Array:
    if isinstance(value, bytes | bytearray | memoryview):
        raw = bytes(value)
        if len(raw) % _RAW.itemsize:
            raise BadInput(f"inputs.{source} has {len(raw)} bytes; raw tensors are little-endian float32")
        return np.frombuffer(raw, _RAW)
    if not isinstance(value, list | tuple | int | float) or isinstance(value, bool):
        told = "is missing" if value is None else f"is a {type(value).__name__}"
        raise BadInput(f"inputs.{source} {told}; give a list of numbers or little-endian float32 bytes")
    if not _holds_numbers(value):
        raise BadInput(f"inputs.{source} holds something else than numbers")
    try:
        array = np.array(value)
    except ValueError as error:
        raise BadInput(f"inputs.{source} is ragged: its rows differ in length") from error
    if array.size and array.dtype.kind not in "iuf":
        raise BadInput(f"inputs.{source} holds something else than numbers")
    return array.reshape(-1)


def _holds_numbers(value: Any) -> bool:
    """Whether nothing but numbers and lists is in it: numpy would make one long text among numbers as many
    of them, before anybody could look at their type.
    """
    level = [value]
    while level:
        kinds = set(map(type, level))
        if not all(issubclass(kind, _ELEMENTS) for kind in kinds):
            return False
        if not any(issubclass(kind, list | tuple) for kind in kinds):
            return True
        level = [each for part in level if isinstance(part, list | tuple) for each in part]
    return True


def _length(value: Any) -> int | None:
    """The number of values of what is not ragged; None where it is no list."""
    if isinstance(value, bytes | bytearray | memoryview):
        return len(bytes(value)) // _RAW.itemsize
    if not isinstance(value, list | tuple):
        return None
    count = 1
    while isinstance(value, list | tuple):
        count *= len(value)
        value = value[0] if value else None
    return count


class TensorPost:
    """Every output of the model as a list of numbers, by its name; no confidence."""

    def __call__(self, outputs: Feeds, rows: Sequence[Row]) -> list[Answer]:
        lists = {name: array.tolist() for name, array in outputs.items()}
        sound = _sound(list(outputs.values()), len(rows))
        return [
            Answer(output={name: values[i] for name, values in lists.items()}) if sound[i] else _UNSOUND
            for i in range(len(rows))
        ]


class ClassPost:
    """A classifier's scores: output `{"label", "scores"}`, confidence the largest score.

    `labels` name the classes (else `label` is the index); `softmax` says that the model gives logits;
    `scores=False` leaves the scores out; `source` names the model's output (the first by default).
    """

    def __init__(
        self,
        labels: Sequence[str] | None = None,
        *,
        softmax: bool = False,
        scores: bool = True,
        source: str | None = None,
    ) -> None:
        self._labels = tuple(labels) if labels is not None else None
        self._softmax = softmax
        self._scores = scores
        self._source = source

    def __call__(self, outputs: Feeds, rows: Sequence[Row]) -> list[Answer]:
        array = outputs[self._source] if self._source else next(iter(outputs.values()))
        sound = _sound([array], len(rows))
        scores = array.reshape(len(rows), -1)
        if self._labels is not None and scores.shape[1] != len(self._labels):
            raise BadOutput(
                f"the model gives {scores.shape[1]} scores, and {len(self._labels)} labels are given"
            )
        if self._softmax:
            exp = np.exp(scores - scores.max(axis=1, keepdims=True))
            scores = exp / exp.sum(axis=1, keepdims=True)
        best = scores.argmax(axis=1).tolist()
        top = np.minimum(scores.max(axis=1), 1.0).tolist()
        shown = scores.tolist() if self._scores else None
        return [self._answer(i, best[i], top[i], shown) if sound[i] else _UNSOUND for i in range(len(rows))]

    def _answer(self, i: int, best: int, confidence: float, shown: list[list[float]] | None) -> Answer:
        output: dict[str, Any] = {"label": self._labels[best] if self._labels else best}
        if shown is not None:
            output["scores"] = shown[i]
        return Answer(output, confidence)


_UNSOUND = Answer(error=Failure(code="bad_output", message="the model answered with NaN or an infinity"))


def _sound(arrays: Sequence[Array], rows: int) -> Sequence[bool]:
    """For each row whether all its numbers are finite."""
    if all(np.isfinite(array).all() for array in arrays if array.dtype.kind == "f"):
        return [True] * rows
    checks = [np.isfinite(array.reshape(rows, -1)).all(axis=1) for array in arrays if array.dtype.kind == "f"]
    return [bool(flag) for flag in np.logical_and.reduce(checks)]
