"""A model's outputs to answers, one a row: names, single values and a confidence of the model's own."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from schemas.messages import Failure
from workers.backends import Answer, Row
from workers.backends.open_inference_codec import Tensor
from workers.backends.remote_faults import Trouble
from workers.backends.tensors import Feeds, TensorPost

_UNSURE = Answer(error=Failure(code="bad_output", message="the model's confidence is not within 0 and 1"))


class NamedPost:
    """Outputs under the names that `names` gives for them (under their own where it is empty).

    `scalars`: what is one value a row is that value and no list of it. `confidence` names the output, one
    value a row within 0 and 1, that is the answer's confidence.
    """

    def __init__(
        self, names: Mapping[str, str] | None = None, *, scalars: bool = False, confidence: str | None = None
    ) -> None:
        self._names = dict(names or {})
        self._scalars = scalars
        self._confidence = confidence
        self._lists = TensorPost()

    def __call__(self, outputs: Feeds, rows: Sequence[Row]) -> list[Answer]:
        return [self._answer(answer) for answer in self._lists(outputs, rows)]

    def _answer(self, answer: Answer) -> Answer:
        if answer.error is not None:
            return answer
        given = dict(answer.output)
        sure = None
        if self._confidence is not None:
            sure = _single(given.pop(self._confidence))
            if type(sure) not in (int, float) or not 0.0 <= sure <= 1.0 or math.isnan(sure):
                return _UNSURE
        names = self._names or {name: name for name in given}
        output = {theirs: given[ours] for ours, theirs in names.items() if ours in given}
        if self._scalars:
            output = {name: _single(value) for name, value in output.items()}
        return Answer(output, sure)


def _single(value: Any) -> Any:
    """The one value of lists of one element, else the lists."""
    inner = value
    while isinstance(inner, list) and len(inner) == 1:
        inner = inner[0]
    return value if isinstance(inner, list) else inner


def by_name(tensors: Sequence[Tensor], wanted: Sequence[str], rows: int, *, batched: bool) -> Feeds:
    """The outputs by name, first axis = rows.

    Raises:
        Trouble: no outputs, others than those wanted, or of another number of rows.
    """
    found = {tensor.name: tensor.array for tensor in tensors}
    if not found or (missing := sorted(set(wanted) - set(found))):
        told = f"no output {missing[0]!r}" if found else "no outputs"
        raise Trouble(f"answered {told}", code="bad_output")
    if wanted:
        found = {name: found[name] for name in wanted}
    if not batched:
        return {name: array[None] for name, array in found.items()}
    for name, array in found.items():
        if array.ndim == 0 or len(array) != rows:
            count = len(array) if array.ndim else 1
            raise Trouble(f"answered {name!r} with {count} rows for {rows}", code="bad_output")
    return found
