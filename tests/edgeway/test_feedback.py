"""What counts as a sample: which answers, which feedback, and how it weighs."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from edgeway.calibrating import NEEDED, check_enough, recalibrate
from edgeway.errors import UsageError
from edgeway.feedback import Answerer, Joined, Sample, confidence_by, feedback_of, outcome_of, sample_of
from schemas import codec, ids
from schemas.messages import Decision, Failure, Feedback, Message, Model, Result

LOCAL = Answerer("local", "nlp/intent", "intent-local", "1")


@dataclass(frozen=True)
class Row:
    key: bytes
    value: bytes
    timestamp: int = 1000
    topic: str = "results"
    partition: int = 0
    offset: int = 0
    headers: tuple[tuple[str, bytes], ...] = field(default=())


def row(message: Any, timestamp: int = 1000) -> Row:
    return Row(ids.scoped(message.tenant, message.id).encode(), codec.encode(message), timestamp)


def answer(request_id: str = "a", **more: Any) -> Result:
    said: dict[str, Any] = {
        "status": "ok",
        "confidence": 0.95,
        "models": {"intent": Model(name="intent-local", version="1")},
        "sides": {"intent": "local"},
    }
    return Result(id=request_id, **(said | more))


def joined(feedback: list[Feedback], results: list[Row], since: int = 0) -> Joined:
    made = Joined(LOCAL, since)
    for heard in feedback:
        made.feedback(row(heard))
    for result in results:
        made.result(result)
    return made


def test_a_verdict_is_one_or_nothing_and_a_score_is_a_weight() -> None:
    assert outcome_of(Feedback(id="a", verdict="right")) == 1.0
    assert outcome_of(Feedback(id="a", verdict="wrong")) == 0.0
    assert outcome_of(Feedback(id="a", score=0.25)) == 0.25
    assert outcome_of(Feedback(id="a", verdict="right", score=0.5)) == 0.5
    assert outcome_of(Feedback(id="a")) is None


def test_feedback_meets_its_answer_by_tenant_and_id() -> None:
    heard = [
        Feedback(id="a", verdict="wrong"),
        Feedback(id="a", verdict="right", tenant="t"),
        Feedback(id="nobody", verdict="right"),
    ]
    made = joined(heard, [row(answer()), row(answer(tenant="t", confidence=0.99)), row(answer("unasked"))])
    assert sorted(made.samples) == [Sample(0.95, 0.0), Sample(0.99, 1.0)]
    assert made.unanswered == 1


def test_the_last_word_and_the_first_answer_count() -> None:
    heard = [Feedback(id="a", verdict="wrong"), Feedback(id="a", verdict="right")]
    assert joined(heard, [row(answer()), row(answer(confidence=0.1))]).samples == [Sample(0.95, 1.0)]


def test_answers_of_before_the_present_calibration_do_not_count() -> None:
    made = joined([Feedback(id="a", verdict="right")], [row(answer(), 500)], since=501)
    assert made.samples == []
    assert made.older == 1


@pytest.mark.parametrize(
    "result",
    [
        answer(confidence=None),
        answer(missing=("chart",)),
        answer(sides={"intent": "cloud"}),
        answer(models={"intent": Model(name="intent-local", version="2")}),
        answer(models={"intent": Model(name="intent-cloud", version="1")}),
        answer(models={}),
        answer(
            models=dict.fromkeys(("a", "b"), Model(name="intent-local", version="1")),
            sides={"a": "local", "b": "local"},
        ),
        answer(decisions=(Decision(step="intent", rule="score", capability="nlp/other"),)),
        answer(status="error", error=Failure(code="internal", message="x")),
    ],
)
def test_answers_that_this_model_did_not_give_alone_do_not_count(result: Result) -> None:
    assert confidence_by(LOCAL, result) is None
    made = joined([Feedback(id="a", verdict="right")], [row(result)])
    assert (made.samples, made.others) == ([], 1)


def test_the_capability_may_be_named_by_the_decision() -> None:
    named = answer(decisions=(Decision(step="intent", rule="score", capability="nlp/intent"),))
    assert confidence_by(LOCAL, named) == 0.95


def test_what_cannot_be_read_is_counted() -> None:
    made = joined([], [])
    made.feedback(Row(b"a", b"garbage"))
    made.feedback(row(Feedback(id="a")))
    made.result(Row(b"a", b"garbage"))
    assert (made.unreadable, made.samples) == (2, [])


def line(**said: Any) -> bytes:
    return json.dumps(said).encode()


def test_a_line_of_samples() -> None:
    assert sample_of(line(confidence=0.7, right=True), LOCAL) == Sample(0.7, 1.0)
    assert sample_of(line(confidence=0.7, score=0.25), LOCAL) == Sample(0.7, 0.25)
    assert sample_of(line(confidence=0.7, right=True, capability="nlp/other"), LOCAL) is None
    assert sample_of(b"  ", LOCAL) is None


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"{", "no JSON"),
        (b"[]", "no JSON object"),
        (b"[" * 3000 + b"]" * 3000, "no JSON"),
        (line(right=True), "no number confidence"),
        (line(confidence=0.5), "no number score"),
        (line(confidence=1.5, right=True), "outside"),
        (line(confidence=True, right=True), "no number"),
    ],
)
def test_a_line_that_is_no_sample_is_refused(raw: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sample_of(raw, LOCAL)


def test_a_line_of_feedback() -> None:
    assert feedback_of(b'{"id": "a", "verdict": "right"}') == Feedback(id="a", verdict="right")
    assert feedback_of(b"\n") is None
    for raw in (b'{"id": "a"}', b'{"id": "", "score": 1}', b'{"id": "a", "score": 2}', b'{"score": 1}', b"x"):
        with pytest.raises(ValueError, match=r"\w"):
            feedback_of(raw)


def samples(wrong: int, right: int) -> list[Sample]:
    return [Sample(0.95, 0.0)] * wrong + [Sample(0.95, 1.0)] * right


@pytest.mark.parametrize(("wrong", "right"), [(0, 0), (40, 40), (0, 500), (500, 2)])
def test_too_few_samples_are_refused_with_the_number_needed(wrong: int, right: int) -> None:
    with pytest.raises(UsageError, match=f"at least {NEEDED} are needed"):
        check_enough(samples(wrong, right))


def test_overconfident_answers_are_brought_down() -> None:
    card = {"name": "intent-local", "version": "1", "side": "local", "capability": "nlp/intent"}
    done = recalibrate(card, samples(60, 140), 0.9, fitted_on="feedback", now=5)
    assert done.changes
    assert done.fit.before.ece == pytest.approx(0.25)
    assert done.fit.after.ece < 0.1
    assert done.card["calibration"]["since_ms"] == 5
    assert done.card["calibration"]["coverage"] == 0.0


def test_messages_are_what_the_topic_holds() -> None:
    assert issubclass(Feedback, Message)
    assert codec.decode(codec.encode(Feedback(id="a", score=0.5)), Feedback).score == 0.5
