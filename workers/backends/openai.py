"""Models behind an OpenAI-compatible API: chat completions and embeddings.

One request a row, under the subtask's id as Idempotency-Key. docs/backends.md lists the options.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from schemas.cards import Card
from schemas.messages import Failure
from schemas.rules import Rules
from workers.backends import Answer, Call, Row, kin_of
from workers.backends.openai_answers import Reading, chat_answer, embeddings_answer, explain
from workers.backends.openai_prices import Tokens
from workers.backends.openai_requests import Request, request_of
from workers.backends.openai_settings import Settings, bounded, prices_of, settings_of
from workers.backends.output_schema import check_of
from workers.backends.remote import Remote
from workers.backends.remote_cards import card_and_options
from workers.backends.remote_faults import Trouble
from workers.backends.remote_probe import Probe
from workers.backends.remote_wire import json_of

MAX_BATCH = 16
"""How many calls go side by side, where the card says nothing."""


class OpenAIBackend:
    """`OpenAIBackend("cloud/nlp/summarize", url="https://HOST/v1", model="NAME", key_env="VARIABLE")`.

    `capability` is SIDE/NAME or a whole card; the other options are the backend's, and, beside a name, those
    fields of the card: `version`, `max_batch`, `description`, `output_schema`, `cost_per_token` and so on.
    The card's `max_cost` follows from the prices and the most tokens of a call.

    Raises:
        LoadError: options that make no sense.
    """

    threads = 4
    """How many batches may be under way at the same time: a slow service holds a thread, not a core."""

    def __init__(self, capability: str | Card, **options: Any) -> None:
        card, given = card_and_options(capability, options, "openai", MAX_BATCH)
        self._settings: Settings = settings_of(card, given)
        self.card = bounded(card, self._settings)
        wants_json = self._settings.mode == "chat" and self._settings.json != "off"
        check = check_of(card) if wants_json else None
        self._reading = Reading(self._settings.output, check)
        how = self._settings
        probe = Probe(how.models, how.keys, how.headers)
        self._remote = Remote(card.capability, how.limits, how.keys, explain, probe)
        self._priced_by_rules = False

    async def load(self) -> None:
        await asyncio.to_thread(self._remote.start)

    def prepare(self, rules: Rules) -> Callable[[], None]:
        """Where the rules have a price for the capability it counts, and not that of the options."""
        priced = f"{self.card.side}/{self.card.capability}" in rules.prices

        def adopt() -> None:
            self._priced_by_rules = priced

        return adopt

    def kin(self, row: Row) -> Hashable:
        return kin_of(row)

    def infer(self, rows: Sequence[Row]) -> list[Answer]:
        until = time.monotonic() + self._remote.limits.timeout_s
        return self.infer_calls(rows, [Call("", until)] * len(rows))

    def infer_calls(self, rows: Sequence[Row], calls: Sequence[Call]) -> list[Answer]:
        pairs = zip(rows, calls, strict=True)
        return self._remote.run(self.card, [self._one(row, call) for row, call in pairs])

    def reachable(self) -> bool | None:
        return self._remote.reachable

    def close(self) -> None:
        self._remote.close()

    async def _one(self, row: Row, call: Call) -> Answer:
        how, name = self._settings, self.card.capability
        asked = request_of(row, how, self.card.output_schema)
        try:
            reply = await self._remote.post(self.card, how.url, asked.body, call, how.headers)
            answer = self._read(json_of(reply.body), asked)
        except Trouble as trouble:
            return trouble.answer(name, how.url.host)
        if answer.error is not None:
            told = Failure(code=answer.error.code, message=f"{name}: {answer.error.message}")
            answer = replace(answer, error=told)
        return replace(answer, cost=self._cost(answer, asked.most))

    def _read(self, said: Any, asked: Request) -> Answer:
        if self._settings.mode == "embeddings":
            return embeddings_answer(
                said, asked.texts, single=asked.single, dimensions=self._settings.dimensions
            )
        return chat_answer(said, self._reading)

    def _cost(self, answer: Answer, most: Tokens) -> float | None:
        """By the tokens used; None where the rules say what a token costs."""
        if self._priced_by_rules:
            return None
        return prices_of(self.card, self._settings).cost(answer.usage, most)


def build(card: Card, options: Mapping[str, Any]) -> OpenAIBackend:
    """Options: see docs/backends.md; `model` is by default the card's.

    Raises:
        LoadError: options that make no sense.
    """
    return OpenAIBackend(card, **options)
