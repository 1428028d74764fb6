"""What a worker counts of the runs of a capability."""

from __future__ import annotations

from prometheus_client import REGISTRY

from schemas.cards import Card
from schemas.messages import Failure
from tests.helpers.lanes import subtask
from workers.backends import Answer
from workers.counters import Counters
from workers.work import Run

CARD = Card(capability="test/counters", side="local", version="1", model="m")


def value(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(f"edgeway_{name}", {"capability": CARD.capability, **labels}) or 0.0


def run(*answers: Answer, ran: bool = True) -> Run:
    works = [subtask(number) for number in range(len(answers))]
    return Run(works, list(answers), CARD, 0, 40.0, ran)  # type: ignore[arg-type]


def failed(code: str) -> Answer:
    return Answer(error=Failure(code=code, message="why"))  # type: ignore[arg-type]


def test_runs_rows_faults_and_answers_are_counted() -> None:
    counters = Counters(CARD)
    counters.add(run(Answer(1), failed("bad_input"), failed("backend_error")))
    counters.add(run(failed("cancelled"), ran=False))
    assert value("subtasks_total", side="local") == 4, "what never ran is answered too"
    assert value("backend_faults_total", side="local") == 1, "bad inputs are the caller's"
    assert (value("inference_seconds_count"), value("inference_seconds_sum")) == (1, 0.04)
    assert (value("batch_rows_count"), value("batch_rows_sum")) == (1, 3)
