"""The connection of a process to one Redis or Valkey, which knows when the server is away."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import NoScriptError, RedisError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

from streams.stores.errors import StoreUnavailable

log = logging.getLogger(__name__)

TIMEOUT_S = 0.3
RETRY_AFTER_S = 1.0
TELL_EVERY_S = 10.0
MOST_CONNECTIONS = 32
"""Of one process; calls beyond wait for one, within their time."""
_MOST_SAID = 200
Value = str | bytes | int | float


@dataclass(frozen=True, slots=True)
class Script:
    """A Lua script and the digest that a server knows it by."""

    text: str
    sha: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sha", hashlib.sha1(self.text.encode(), usedforsecurity=False).hexdigest())


def address_of(url: str) -> str:
    """The URL as it may be shown: without password and query, where a password may stand as well."""
    parts = urlsplit(url)
    login, at, place = parts.netloc.rpartition("@")
    user, colon, _ = login.partition(":")
    return f"{parts.scheme}://{user}{colon and ':***'}{at}{place}{parts.path}"


class RedisLink:
    """Calls to one server (Redis 6.2 or newer, or Valkey); replies are bytes.

    A call lasts `timeout_s` at most, connecting and one retry on a fresh connection included: which
    connections a restarted server has dropped is found out by using them. After a call that timed out the
    server is known to be away: every call fails at once, and a task of the link's own asks once in
    `retry_after_s` until it answers in time. So a server that hangs or is slow costs a caller one timeout. A
    refused connection costs next to nothing and is tried again by the next call. That the server is away is
    logged at once and then once in TELL_EVERY_S, and that it is back. A server that answers by an error (it
    is full, a replica, or a key holds something else) is not away: that is logged as often, with what it
    said. `clock` gives seconds.
    """

    def __init__(
        self,
        url: str,
        *,
        timeout_s: float = TIMEOUT_S,
        retry_after_s: float = RETRY_AFTER_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.address = address_of(url)
        self.timeout_s = timeout_s
        self._retry_after_s = retry_after_s
        self._clock = clock
        self._away = False
        self._told = -TELL_EVERY_S
        self._told_refused = -TELL_EVERY_S
        self._asking: asyncio.Task[None] | None = None
        self._holders = 1
        # Another pool answers the call beyond its size by an error, as if nobody were there.
        pool = BlockingConnectionPool.from_url(
            url,
            max_connections=MOST_CONNECTIONS,
            timeout=timeout_s,
            # With one it sends under asyncio.wait_for, which swallows cancellations in Python 3.11.
            socket_timeout=None,
            socket_connect_timeout=timeout_s,
            retry=Retry(NoBackoff(), 1),
        )
        self._redis = Redis.from_pool(pool)

    @property
    def away(self) -> bool:
        """Whether the last call found nobody. True costs nothing to find out."""
        return self._away

    def _is_asking(self) -> bool:
        return self._asking is not None and not self._asking.done()

    async def run(self, script: Script, keys: Sequence[Value], args: Sequence[Value]) -> Any:
        """Run `script`; one round trip where the server knows it.

        Raises:
            StoreUnavailable: no answer in time, or an error; whether the script ran is unknown.
        """
        return await self._answer(lambda: self._run(script, keys, args))

    async def call(self, *words: Value) -> Any:
        """One command with its arguments.

        Raises:
            StoreUnavailable: no answer in time, or an error; whether it was done is unknown.
        """
        return await self._answer(lambda: self._redis.execute_command(*words))  # type: ignore[no-untyped-call]

    async def look(self) -> bool:
        """Whether the server answers; logged where it does not."""
        try:
            await self.call("PING")
        except StoreUnavailable:
            return False
        return True

    def hold(self) -> bool:
        """One more holder, who closes as well; False where the link is closed already."""
        if self._holders < 1:
            return False
        self._holders += 1
        return True

    async def close(self) -> None:
        """Give the connections back, once every holder has closed. Harmless when repeated."""
        self._holders -= 1
        if self._holders > 0:
            return
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.wait((self._asking,), timeout=1.0)
            self._asking = None
        await self._redis.aclose()

    async def _run(self, script: Script, keys: Sequence[Value], args: Sequence[Value]) -> Any:
        try:
            return await self._redis.evalsha(script.sha, len(keys), *keys, *args)
        except NoScriptError:
            return await self._redis.eval(script.text, len(keys), *keys, *args)

    async def _answer(self, ask: Callable[[], Awaitable[Any]]) -> Any:
        if self._is_asking():
            self._note_away("no answer in time")
            raise StoreUnavailable(f"Redis is away (it gave no answer within {self.timeout_s} s lately)")
        try:
            return await self._in_time(ask)
        except StoreUnavailable as error:
            # Of several calls that timed out together the first one sees to it.
            if _hung(error.__cause__) and not self._is_asking() and self._holders > 0:
                self._asking = asyncio.create_task(self._ask_on(), name=f"redis {self.address}")
            raise

    async def _in_time(self, ask: Callable[[], Awaitable[Any]]) -> Any:
        try:
            async with asyncio.timeout(self.timeout_s):
                answer = await ask()
        except ResponseError as error:
            self._note_back()
            self._note_refused(error)
            raise StoreUnavailable(f"Redis refuses the call ({type(error).__name__}: {error})") from error
        except (RedisError, OSError, TimeoutError) as error:
            self._note_away(type(error).__name__)
            what = str(error) or f"no answer within {self.timeout_s} s"
            raise StoreUnavailable(f"Redis is away ({type(error).__name__}: {what})") from error
        self._note_back()
        return answer

    async def _ask_on(self) -> None:
        """Ask until the server answers in time."""
        while True:
            await asyncio.sleep(self._retry_after_s)
            try:
                await self._in_time(self._redis.ping)
            except StoreUnavailable:
                continue
            return

    def _note_away(self, why: str) -> None:
        self._away = True
        now = self._clock()
        if now - self._told >= TELL_EVERY_S:
            self._told = now
            log.warning(
                "Redis at %s is away (%s): until it is back repeated ids go unnoticed by the router, nothing "
                "is cached, and under a budget the cloud stays closed",
                self.address,
                why,
            )

    def _note_refused(self, error: ResponseError) -> None:
        now = self._clock()
        if now - self._told_refused >= TELL_EVERY_S:
            self._told_refused = now
            log.error(
                "Redis at %s refuses calls (%s: %s): what it refuses counts as unknown, so repeated ids may "
                "go unnoticed by the router, nothing be cached, and the cloud stay closed under a budget",
                self.address,
                type(error).__name__,
                str(error)[:_MOST_SAID],
            )

    def _note_back(self) -> None:
        if self._away:
            self._away = False
            self._told = -TELL_EVERY_S
            log.warning("Redis at %s is back", self.address)


def shared_link(url: str) -> RedisLink:
    """The link of this process and event loop to `url`; each holder closes it once, the last one for good."""
    key = (url, id(asyncio.get_running_loop()))
    link = _shared.get(key)
    if link is None or not link.hold():
        link = _shared[key] = RedisLink(url)
    return link


_shared: WeakValueDictionary[tuple[str, int], RedisLink] = WeakValueDictionary()


def _hung(error: BaseException | None) -> bool:
    return isinstance(error, TimeoutError | RedisTimeoutError)
