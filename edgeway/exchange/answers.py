"""Answers and those who wait for them: each Result is matched by its key before it is decoded."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

from edgeway.errors import ExchangeClosed, ExchangeFull
from edgeway.exchange.expected import Expected
from edgeway.exchange.ports import Sent
from edgeway.exchange.remembered import Remembered
from schemas import codec, ids
from schemas.errors import SchemaError
from schemas.messages import Result
from streams.delivery import Record

log = logging.getLogger(__name__)


class Wanted:
    """Whose answer is awaited: the Result under `key`, of the content `digest` (None: any), or the conflict
    under `other`."""

    __slots__ = ("digest", "future", "key", "other")

    def __init__(self, sent: Sent | str) -> None:
        self.future: asyncio.Future[Result] | None = None
        self.other: bytes | None = None
        self.digest: str | None = None
        if isinstance(sent, str):
            self.key = sent.encode()
        else:
            self.key = sent.key.encode()
            self.digest = sent.digest
            self.other = conflict_key(sent)

    @property
    def keys(self) -> tuple[bytes, ...]:
        """Under which keys it may be."""
        return (self.key,) if self.other is None else (self.key, self.other)

    def is_met_by(self, result: Result, key: bytes) -> bool:
        """Whether `result`, found under `key`, is the answer."""
        if key == self.other:
            return result.error is not None and result.error.code == "id_conflict"
        # The answer to other content under the same id is none of ours: ours is a conflict.
        return self.digest is None or result.digest is None or result.digest == self.digest


def conflict_key(sent: Sent) -> bytes:
    """Under which key the request is answered if its id stands for other content."""
    tenant, request_id = ids.unscoped(sent.key)
    return ids.scoped(tenant, ids.conflicting(request_id, sent.digest)).encode()


class Answers:
    """Takes in the records of `results`. With `all_of_them` each is remembered, else those of `expected`."""

    def __init__(self, remembered: Remembered, expected: Expected, most: int, *, all_of_them: bool) -> None:
        self._remembered = remembered
        self._expected = expected
        self._most = most
        self._all = all_of_them
        self._waiters: dict[bytes, list[Wanted]] = {}
        self._closed = False
        self.waiting = 0

    def take(self, records: Iterable[Record]) -> None:
        """Take in records of `results`, in order."""
        for record in records:
            key = record.key
            if not key or not record.value:
                continue
            waiters = self._waiters.get(key)
            if waiters is None and not self._all and key not in self._expected:
                continue
            if self._remembered.add(key, record.value, record.timestamp):
                self._expected.answered(key)
                if waiters:
                    self._tell(key, record.value, waiters)

    def known(self, key: bytes) -> Result | None:
        """The answer remembered under `key`."""
        raw = self._remembered.get(key)
        result = None if raw is None else decoded(key, raw)
        if raw is not None and result is None:
            self._remembered.discard(key)
        return result

    def find(self, wanted: Wanted) -> Result | None:
        """The answer among those remembered."""
        for key in wanted.keys:
            result = self.known(key)
            if result is not None and wanted.is_met_by(result, key):
                return result
        return None

    def wait(self, wanted: Wanted) -> asyncio.Future[Result]:
        """A future of the answer; end it by `leave`, whatever comes of it.

        Raises:
            ExchangeFull: as many wait as may.
            ExchangeClosed: nothing comes any more.
        """
        if self._closed:
            raise ExchangeClosed
        if self.waiting >= self._most:
            raise ExchangeFull(self._most)
        wanted.future = asyncio.get_running_loop().create_future()
        self.waiting += 1
        self._waiters.setdefault(wanted.key, []).append(wanted)
        if wanted.other is not None:
            self._waiters.setdefault(wanted.other, []).append(wanted)
        return wanted.future

    def leave(self, wanted: Wanted) -> None:
        """It waits no more."""
        self.waiting -= 1
        for key in wanted.keys:
            waiters = self._waiters.get(key)
            if waiters is None:
                continue
            waiters.remove(wanted)
            if not waiters:
                del self._waiters[key]

    def close(self) -> None:
        """Fail all that wait."""
        self._closed = True
        for waiters in self._waiters.values():
            for wanted in waiters:
                if wanted.future is not None and not wanted.future.done():
                    wanted.future.set_exception(ExchangeClosed())
                    # Who was cancelled at that moment never looks.
                    wanted.future.exception()

    def _tell(self, key: bytes, raw: bytes, waiters: list[Wanted]) -> None:
        result = decoded(key, raw)
        if result is None:
            self._remembered.discard(key)
            return
        for wanted in waiters:
            if wanted.future is not None and not wanted.future.done() and wanted.is_met_by(result, key):
                wanted.future.set_result(result)


def decoded(key: bytes, raw: bytes) -> Result | None:
    """The Result in a record; None, and a line in the log, where it is none of that key."""
    try:
        result = codec.decode(raw, Result)
    except SchemaError as error:
        log.error("a record of results that is no result is passed over: %s", error)
        return None
    if ids.scoped(result.tenant, result.id).encode() != key:
        log.error("a result whose key is not its id is passed over")
        return None
    return result
