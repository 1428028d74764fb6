"""What callers said of answers, joined with the answers: the pure part of recalibration."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from schemas import codec, headers, ids
from schemas.errors import SchemaError
from schemas.messages import Feedback, Result
from streams.delivery.records import Record


class Answerer(NamedTuple):
    """The model whose answers count: a card's side, capability, name and version."""

    side: str
    capability: str
    model: str
    version: str


class Sample(NamedTuple):
    """A confidence as the caller got it, and 1 for right, 0 for wrong, a score between."""

    confidence: float
    outcome: float


@dataclass(slots=True)
class Joined:
    """Feedback and the answers it speaks of. Give it all feedback first, then the results in their order.

    `since` is the append time in ms of the first answer that counts: confidences of before were made by
    another calibration. The last feedback on an answer counts, and the first result of an id.
    """

    answerer: Answerer
    since: int = 0
    said: dict[str, float] = field(default_factory=dict)
    found: dict[str, Sample | None] = field(default_factory=dict)
    unreadable: int = 0
    older: int = 0
    others: int = 0

    def feedback(self, record: Record) -> None:
        """Take one record of `feedback`."""
        heard = _decoded(record, Feedback)
        outcome = None if heard is None else outcome_of(heard)
        if heard is None or outcome is None:
            self.unreadable += 1
            return
        self.said[ids.scoped(heard.tenant, heard.id)] = outcome

    def result(self, record: Record) -> None:
        """Take one record of `results`."""
        # The key is the scoped id, so results that nobody spoke of are not even decoded.
        scoped = (record.key or b"").decode("utf-8", "replace")
        if scoped not in self.said or scoped in self.found:
            return
        result = _decoded(record, Result)
        if result is None:
            return
        confidence = confidence_by(self.answerer, result)
        self.found[scoped] = None
        if confidence is None:
            self.others += 1
        elif record.timestamp < self.since:
            self.older += 1
        else:
            self.found[scoped] = Sample(confidence, self.said[scoped])

    @property
    def samples(self) -> list[Sample]:
        """Those that count."""
        return [sample for sample in self.found.values() if sample is not None]

    @property
    def unanswered(self) -> int:
        """Feedback on ids of which no result was seen."""
        return len(self.said) - len(self.found)


def outcome_of(heard: Feedback) -> float | None:
    """1 for right, 0 for wrong; a score s as it is: it then weighs as a right answer by s and as a wrong one
    by 1 - s. A score says more than a verdict, so it counts where both are given; None where neither is."""
    if heard.score is not None:
        return float(heard.score)
    return None if heard.verdict is None else float(heard.verdict == "right")


def confidence_by(answerer: Answerer, result: Result) -> float | None:
    """The confidence of a result that `answerer` alone gave; None where it is of others too, or has none.

    A result tells the confidence of the whole answer. Only where one step made it is that the step's own, so
    merged answers are left out; so are those of which a step is missing.
    """
    if result.status != "ok" or result.confidence is None or result.missing or len(result.models) != 1:
        return None
    ((step, model),) = result.models.items()
    if list(result.sides.items()) != [(step, answerer.side)]:
        return None
    if (model.name, model.version) != (answerer.model, answerer.version):
        return None
    named = {decision.capability for decision in result.decisions if decision.step == step}
    if named - {None, answerer.capability}:
        return None
    return float(result.confidence)


def sample_of(line: bytes, answerer: Answerer) -> Sample | None:
    """The sample of a line of JSON: `confidence`, and `right` (true, false) or `score` in [0, 1].

    None for an empty line, and where a `side`, `capability`, `model` or `version` there is another's.

    Raises:
        ValueError: it is none; the text says why and quotes nothing.
    """
    if not line.strip():
        return None
    try:
        said: Any = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        raise ValueError("it is no JSON") from None
    if not isinstance(said, dict):
        raise ValueError("it is no JSON object")
    if any(key in said and str(said[key]) != value for key, value in answerer._asdict().items()):
        return None
    if isinstance(said.get("right"), bool):
        outcome = float(said["right"])
    else:
        outcome = _ratio(said, "score", "give `right` (true or false) or `score`")
    return Sample(_ratio(said, "confidence", "give `confidence`, as the result told it"), outcome)


def feedback_of(line: bytes) -> Feedback | None:
    """The feedback of a line of JSON; None for an empty one.

    Raises:
        ValueError: it is none; the text says why.
    """
    if not line.strip():
        return None
    try:
        heard = codec.decode(line.strip(), Feedback, "json")
    except SchemaError as error:
        raise ValueError(str(error)) from error
    return checked(heard)


def checked(heard: Feedback) -> Feedback:
    """`heard`, where it can be joined with an answer and says something.

    Raises:
        ValueError: it cannot.
    """
    try:
        ids.check_id(heard.id)
    except SchemaError as error:
        raise ValueError(str(error)) from error
    if outcome_of(heard) is None:
        raise ValueError("feedback says right, wrong, or a score from 0 to 1; give one")
    return heard


def _ratio(said: dict[str, Any], key: str, otherwise: str) -> float:
    value = said.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"it has no number {key}: {otherwise}")
    if not 0 <= value <= 1:
        raise ValueError(f"{key} is outside of 0 to 1")
    return float(value)


def _decoded(record: Record, kind: Callable[..., Any]) -> Any:
    raw = record.value or b""
    try:
        return codec.decode(raw, kind, codec.format_of(headers.read(record.headers).content_type, raw))
    except SchemaError:
        return None
