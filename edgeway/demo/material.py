"""What the demonstration sends: questions with their true intents, the two decomposed examples, images."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from edgeway.errors import UsageError
from schemas.messages import Request

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "demo"
IMAGES = 10
SAMPLE = 500
PRIVATE = "My card ends in 4242 and was stolen in Lyon, please block it"


@dataclass(frozen=True, slots=True)
class Question:
    """A customer's question and the intent that people gave it."""

    id: str
    text: str
    intent: str

    def request(self) -> Request:
        return Request(id=self.id, task="intent", inputs={"text": self.text})


def rules_file() -> Path:
    """The demo's rules.

    Raises:
        UsageError: the examples are not here: they come with a checkout, not with the installed package.
    """
    path = FOLDER / "rules.json"
    if not path.is_file():
        raise UsageError(
            f"the demo needs the examples of a checkout; {path} is missing. Clone it, then `make demo`"
        )
    return path


def questions(count: int) -> list[Question]:
    """`count` questions of Banking77: the checked-in sample of 500, above that the whole test file, then
    around again."""
    name = "banking77_test_500.csv" if count <= SAMPLE else "banking77_test.csv"
    with (FOLDER / "data" / name).open(encoding="utf-8", newline="") as file:
        rows = [(row["text"], row["category"]) for row in csv.DictReader(file)]
    chosen = islice(cycle(rows), count)
    return [Question(f"question-{number:05d}", text, intent) for number, (text, intent) in enumerate(chosen)]


def examples() -> list[Request]:
    """The decomposed examples in Chinese and English, some images, and one question marked as private."""
    lines = (FOLDER / "data" / "requests_decomposed.jsonl").read_text(encoding="utf-8").splitlines()
    return [
        *(_request(json.loads(line)) for line in lines if line.strip()),
        *(
            Request(id=f"image-{image['id']}", task="image_class", inputs={"pixels": image["pixels"]})
            for image in _images()
        ),
        Request(id="private-1", task="intent", inputs={"text": PRIVATE}, privacy="high"),
    ]


def _request(line: dict[str, Any]) -> Request:
    return Request(id=line["id"], query=line.get("query"), task=line.get("task"), inputs=line["inputs"])


def _images() -> Sequence[dict[str, Any]]:
    shown: list[dict[str, Any]] = json.loads((FOLDER / "data" / "images_28x28.json").read_text())["images"]
    return shown[:IMAGES]


def one_sided(asked: Sequence[Question]) -> tuple[float, float]:
    """(all-local, all-cloud) accuracy on the same questions: the two models asked directly, without Kafka."""
    from examples.demo.capabilities import BATCHES

    rows = [{"text": question.text} for question in asked]
    shares = []
    for name in ("local/nlp/intent", "cloud/nlp/intent"):
        answers = BATCHES[name](rows)
        right = sum(
            not isinstance(answer, ValueError) and answer[0]["intent"] == question.intent
            for answer, question in zip(answers, asked, strict=True)
        )
        shares.append(right / len(rows))
    return shares[0], shares[1]
