"""How backends ask services over HTTP: one place for time, size, redirects, retries and keys.

A backend has one `Remote`. It starts it in `load`, awaits `post` for each row within `run`, and closes it in
`close`. Whatever goes wrong is a `Trouble`, which says what it costs.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

import httpx

from schemas.cards import Card
from workers.backends import Answer, Call
from workers.backends.remote_attempts import Attempts
from workers.backends.remote_count import Counted, again
from workers.backends.remote_faults import Refusal, Trouble, trouble_of
from workers.backends.remote_keys import Keys
from workers.backends.remote_lookout import Lookout
from workers.backends.remote_loop import OwnLoop
from workers.backends.remote_probe import Probe, sight_of
from workers.backends.remote_redirects import MOST_HOPS, is_redirect, next_hop, same_origin
from workers.backends.remote_retries import Policy, spread_s
from workers.backends.remote_wire import USUAL, Limits, Reply, broken, client_of, read
from workers.errors import BadInput, LoadError
from workers.faults import FAULTS, told
from workers.inference import BACKEND_FAULTS

T = TypeVar("T")

LONGEST_TRUCE_S = 60.0
"""The longest that one Retry-After keeps all calls back."""

_REFUSAL_BYTES = 16 * 1024
_REFUSAL_S = 1.0
Explain = Callable[[int, bytes], Refusal | None]
"""What the body of a refusal adds to its status; it may raise nothing."""


class Remote:
    """The client of one backend. `explain` reads refusals; `probe` is asked whether one that was away
    is back.
    """

    def __init__(
        self,
        name: str,
        limits: Limits = USUAL,
        keys: Keys | None = None,
        explain: Explain | None = None,
        probe: Probe | None = None,
    ) -> None:
        self.limits = limits
        self._name = name
        self._keys = keys or Keys()
        self._explain = explain
        self._loop = OwnLoop(name)
        self._client: httpx.AsyncClient | None = None
        self._not_before = 0.0
        self._probe = probe
        self._lookout = Lookout(name, None)

    @property
    def reachable(self) -> bool | None:
        """Whether the service is there, by the last calls and looks. From any thread."""
        return self._lookout.known

    def start(self) -> None:
        """Make ready. Starting twice is nothing.

        Raises:
            LoadError: a key or a file of certificates that is not there.
        """
        if self._loop.runs:
            return
        try:
            self._keys.headers()
        except LoadError as error:
            raise LoadError(f"{self._name}: {error}") from error
        self._client = client_of(self._name, self.limits)
        probe = self._probe
        look = None if probe is None else partial(sight_of, self._name, probe, self.limits)
        self._lookout = Lookout(self._name, look)
        self._loop.start()

    def close(self) -> None:
        client, self._client = self._client, None
        self._lookout = Lookout(self._name, None)
        self._loop.close(client.aclose if client is not None else None)

    def run(self, card: Card, rows: Sequence[Coroutine[Any, Any, Answer]]) -> list[Answer]:
        """The answers to rows that are asked side by side, in order; one that fails fails alone. Blocks.

        Raises:
            LoadError: not started.
        """
        if not self._loop.runs:
            for row in rows:
                row.close()
            raise LoadError(f"{card.capability} is not loaded; await load() first")
        return self._loop.run(_all(card, rows))

    def run_one(self, work: Coroutine[Any, Any, T]) -> T:
        """What `work` returns or raises, for backends that ask for several rows at once. Blocks; `work`
        bounds its own time.

        Raises:
            LoadError: not started.
        """
        return self._loop.run(work)

    async def post(
        self,
        card: Card,
        url: httpx.URL,
        body: bytes,
        call: Call,
        headers: Mapping[str, str] | None = None,
        keys: Keys | None = None,
    ) -> Reply:
        """Post JSON under the subtask's id as its idempotency key, and read the answer. `keys` in place of
        the backend's own.

        Raises:
            Trouble: no answer of success by the call's deadline, or after TOTAL_S, or one too large.
            BadInput: more than the request may hold.
        """
        with Counted(card.capability):
            return await self._post(card, url, body, call, headers, keys)

    async def _post(
        self,
        card: Card,
        url: httpx.URL,
        body: bytes,
        call: Call,
        headers: Mapping[str, str] | None,
        keys: Keys | None,
    ) -> Reply:
        if len(body) > self.limits.request_bytes:
            raise BadInput(f"the request takes more than {self.limits.request_bytes} bytes")
        given = {"edgeway-capability": card.capability} | dict(headers or {})
        if call.subtask:
            given["idempotency-key"] = call.subtask
        if call.traceparent:
            given["traceparent"] = call.traceparent
        repeatable = bool(call.subtask) and (card.max_cost == 0 or self.limits.idempotent)
        left_s = min(self.limits.timeout_s, call.until - time.monotonic())
        policy = Policy(self.limits.attempts, repeatable)
        attempts = Attempts(policy, time.monotonic() + left_s, keys or self._keys)
        if left_s <= 0:
            raise Trouble("was not asked: the deadline had passed", code="deadline_exceeded", free=True)
        try:
            async with asyncio.timeout(left_s):
                await self._lookout.admit()
                return await self._attempts(url, body, given, attempts)
        except TimeoutError:
            self._lookout.note(False if attempts.sent else None)
            said = "gave no answer" if attempts.sent else "could not be asked"
            text = f"{said} within {left_s:.1f} s"
            raise Trouble(text, free=not (attempts.sent or attempts.unknown)) from None

    async def _attempts(
        self, url: httpx.URL, body: bytes, headers: Mapping[str, str], attempts: Attempts
    ) -> Reply:
        while True:
            await self._truce(attempts)
            attempts.number += 1
            try:
                reply = await self._ask(url, body, headers, attempts)
                self._lookout.note(True)
                return reply
            except Trouble as trouble:
                self._lookout.note(trouble.there)
                pause = attempts.pause(trouble)
                if trouble.after_s is not None:
                    truce = min(LONGEST_TRUCE_S, trouble.after_s)
                    self._not_before = max(self._not_before, time.monotonic() + truce)
                if pause is None:
                    raise attempts.last(trouble) from trouble.__cause__
            attempts.sent = False
            again(self._name)
            await asyncio.sleep(pause)

    async def _truce(self, attempts: Attempts) -> None:
        """Wait until the service takes calls again, as it asked.

        Raises:
            Trouble: that is after the deadline.
        """
        wait_s = self._not_before - time.monotonic()
        if wait_s <= 0:
            return
        if time.monotonic() + wait_s >= attempts.until:
            text = f"was not asked: it wants no calls for another {wait_s:.0f} s, which is too late for this"
            raise attempts.last(Trouble(text, free=True))
        await asyncio.sleep(spread_s(wait_s, random.random()))

    async def _ask(
        self, url: httpx.URL, body: bytes, headers: Mapping[str, str], attempts: Attempts
    ) -> Reply:
        """One attempt, through redirects that may be followed."""
        target = url
        for _ in range(MOST_HOPS + 1):
            try:
                sent = {**headers, **attempts.keys.headers()} if same_origin(url, target) else headers
            except LoadError as error:
                raise Trouble(f"was not asked: {error}", free=True) from error
            attempts.sent = False
            try:
                answer = await self._once(target, body, sent, attempts)
            except httpx.HTTPError as error:
                raise broken(error, self.limits.connect_s, sent=attempts.sent) from error
            if isinstance(answer, Reply):
                return answer
            target = next_hop(target, answer.status, answer.location, self.limits.hosts)
        raise Trouble(f"redirected more than {MOST_HOPS} times", free=True)

    async def _once(
        self, url: httpx.URL, body: bytes, headers: Mapping[str, str], attempts: Attempts
    ) -> Reply | _Elsewhere:
        if self._client is None:
            raise Trouble("was not asked: the backend is closed", free=True)
        async with self._client.stream(
            "POST",
            url,
            content=body,
            headers=dict(headers),
            follow_redirects=False,
            extensions={"trace": attempts.trace},
        ) as response:
            status = response.status_code
            if is_redirect(status):
                return _Elsewhere(status, response.headers.get("location"))
            if not 200 <= status < 300:
                said = await self._said(response)
                trouble = trouble_of(status, response.headers, time.time(), said)
                assert trouble is not None
                raise trouble
            return Reply(dict(response.headers), await read(response, self.limits.answer_bytes))

    async def _said(self, response: httpx.Response) -> Refusal | None:
        """What the refusal's body says, as far as it comes soon and is small."""
        if self._explain is None:
            return None
        try:
            async with asyncio.timeout(_REFUSAL_S):
                body = await read(response, _REFUSAL_BYTES)
        except (TimeoutError, httpx.HTTPError, Trouble):
            return None
        return self._explain(response.status_code, body)


class _Elsewhere(NamedTuple):
    status: int
    location: str | None


async def _all(card: Card, rows: Sequence[Coroutine[Any, Any, Answer]]) -> list[Answer]:
    return await asyncio.gather(*(_alone(card, row) for row in rows))


async def _alone(card: Card, row: Coroutine[Any, Any, Answer]) -> Answer:
    try:
        answer = await row
    except Exception as error:  # noqa: BLE001 - raised on, it would have the whole batch asked again
        return Answer(error=told(error, card.capability), cost=0.0 if isinstance(error, BadInput) else None)
    if answer.error is not None and answer.error.code in BACKEND_FAULTS:
        FAULTS.elsewhere(answer.error)
    return answer
