"""Requests of all kinds, and what of each must never be seen in the cloud."""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.faults.app.private import revealed
from tests.faults.harness.plants import KINDS, is_card, is_iban, plant
from tests.helpers.shared_data import shared

TENANT = "clinic"
MASKED = ("email", "phone")
FORMATS = ("EMAIL_ADDRESS", "CREDIT_CARD", "IBAN_CODE", "IP_ADDRESS")
"""Kinds of the marked documents that a format alone gives away; cards and accounts where they check."""
TASKS = ("ask", "cloud", "caption")
SHARES = {
    "plain": 36,
    "document": 26,
    "declared": 10,
    "tenant": 4,
    "task": 4,
    "nested": 9,
    "masked": 5,
    "chain": 3,
    "plain_chain": 3,
}


@dataclass(frozen=True, slots=True)
class Asked:
    """One request: its kind in SHARES, what is planted in it, and further marked spans by their kind."""

    kind: str
    task: str
    planted: tuple[str, ...] = ()
    marked: tuple[tuple[str, str], ...] = ()
    text: str = ""

    @property
    def declared(self) -> bool:
        """Nothing at all of it may be in the cloud."""
        return self.kind in ("declared", "tenant", "task")


class PrivateLoad:
    """`asked` by id grows as `requests` are drawn."""

    def __init__(self, seed: int, deadline_ms: int) -> None:
        self._choose = random.Random(seed)
        self._deadline_ms = deadline_ms
        self.asked: dict[str, Asked] = {}
        with shared("banking77/test.csv").open(encoding="utf-8", newline="") as lines:
            self._questions = [row["text"] for row in csv.DictReader(lines)]
        self._documents = json.loads(shared("pii/synth_dataset_v2.json").read_text(encoding="utf-8"))
        self._makers: dict[str, Callable[[int], tuple[Asked, dict[str, Any]]]] = {
            "plain": self._plain,
            "document": self._document,
            "declared": self._declared,
            "tenant": self._tenant,
            "task": self._task,
            "nested": self._nested,
            "masked": self._masked,
            "chain": self._chain,
            "plain_chain": self._plain_chain,
        }

    def requests(self) -> Iterator[tuple[str, bytes]]:
        """Without end."""
        number = 0
        while True:
            (kind,) = self._choose.choices(list(SHARES), list(SHARES.values()))
            asked, body = self._makers[kind](number)
            name = f"r-{number}"
            self.asked[name] = asked
            whole = {"id": name, "task": asked.task, "deadline_ms": self._deadline_ms, **body}
            yield name, json.dumps(whole, ensure_ascii=False).encode()
            number += 1

    def _question(self) -> str:
        return str(self._choose.choice(self._questions))

    def _any(self) -> str:
        return self._choose.choice(TASKS)

    def _plant(self, *kinds: str) -> str:
        return plant(self._choose.choice(kinds or KINDS), self._choose)

    def _plain(self, _: int) -> tuple[Asked, dict[str, Any]]:
        return Asked("plain", self._any()), {"inputs": {"text": self._question()}}

    def _document(self, _: int) -> tuple[Asked, dict[str, Any]]:
        found = self._choose.choice(self._documents)
        spans = [(span["entity_type"], span["entity_value"]) for span in found["spans"]]
        sure = [value for kind, value in spans if _is_format(kind, value)]
        rest = [(kind, value) for kind, value in spans if not _is_format(kind, value)]
        asked = Asked("document", self._any(), tuple(sure), tuple(rest))
        return asked, {"inputs": {"text": found["full_text"]}}

    def _secret(self, kind: str, task: str) -> tuple[Asked, dict[str, Any]]:
        secret = "".join(self._choose.choices("bcdfghjklmnpqrstvwxz", k=16))
        return Asked(kind, task, (secret,)), {"inputs": {"text": f"{self._question()} {secret}"}}

    def _declared(self, _: int) -> tuple[Asked, dict[str, Any]]:
        asked, body = self._secret("declared", self._any())
        return asked, body | {"privacy": "high"}

    def _tenant(self, _: int) -> tuple[Asked, dict[str, Any]]:
        asked, body = self._secret("tenant", self._any())
        return asked, body | {"tenant": TENANT}

    def _task(self, _: int) -> tuple[Asked, dict[str, Any]]:
        return self._secret("task", "guarded")

    def _nested(self, _: int) -> tuple[Asked, dict[str, Any]]:
        planted, question = self._plant(), self._question()
        card = plant("card", self._choose)
        shapes: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
            (planted, {"form": {"pages": [{"lines": ["a", {"of": planted}]}]}}, {}),
            (planted, {"index": {planted: True}}, {}),
            (planted, {}, {"context": {"notes": ["b", f"ask {planted} again"]}}),
            (planted, {"file": f"scan {planted}.pdf"}, {}),
            (card, {"payment": {"number": int(card)}}, {}),
        ]
        planted, inputs, params = self._choose.choice(shapes)
        body = {"inputs": {"text": question, **inputs}, "params": params}
        return Asked("nested", self._any(), (planted,)), body

    def _masked(self, _: int) -> tuple[Asked, dict[str, Any]]:
        planted = self._plant("email", "mobile")
        text = f"{self._question()} {planted}"
        return Asked("masked", self._any(), (planted,), text=text), {"inputs": {"text": text}}

    def _chain(self, number: int) -> tuple[Asked, dict[str, Any]]:
        return Asked("chain", "chain", (revealed(number),)), {"inputs": {"n": number}}

    def _plain_chain(self, number: int) -> tuple[Asked, dict[str, Any]]:
        return Asked("plain_chain", "plain_chain", (revealed(number),)), {"inputs": {"n": number}}


def _is_format(kind: str, value: str) -> bool:
    checks = {"CREDIT_CARD": is_card, "IBAN_CODE": is_iban}
    return kind in FORMATS and checks.get(kind, bool)(value)
