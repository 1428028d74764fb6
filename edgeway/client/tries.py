"""The tries of one call of a gateway: which count, and how long each waits for the next."""

from __future__ import annotations

import httpx

from edgeway.client.errors import NotSent
from edgeway.client.replies import Again
from edgeway.client.retrying import Clock, Jitter, Retries

MOST_AWAY_S = 2.0
"""Between looks for a gateway that is away, at most: it is back within seconds."""
_RATE = 429
_REFUSED = frozenset((_RATE, 503))
_AWAY = frozenset((502, 503, 504))
_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol)


class Tries:
    """Of a call whose request may be `taken` already: it was acknowledged, or a connection broke over it.

    A gateway that was killed takes longer to come back than all tries together. So once the request may be
    taken, looks at one that is away (it refuses connections, or a proxy says 502 to 504) do not count for
    `outage_s`; who waits ends that sooner by a time of its own. Before that a gateway that is not there is
    told soon. Nor does a 429 count that says when to come again.
    """

    def __init__(
        self, request_id: str, retries: Retries, jitter: Jitter, clock: Clock, *, taken: bool = False
    ) -> None:
        self._id = request_id
        self._retries = retries
        self._jitter = jitter
        self._clock = clock
        self._taken = taken
        self._failed = 0
        self._looks = 0
        self._since: float | None = None

    async def pause(self, trouble: Again | Exception) -> None:
        """Wait before the next try, as `trouble` ended the last one.

        Raises:
            GatewayRefused: no more; the gateway said each time that it has taken nothing.
            NotSent: no more; the last try ended without a word.
        """
        await self._clock.sleep(self._wait_s(trouble))

    def _wait_s(self, trouble: Again | Exception) -> float:
        now = self._clock.now()
        self._since = now if self._since is None else self._since
        refused = isinstance(trouble, Again)
        status = trouble.refusal.status if isinstance(trouble, Again) else 0
        after = trouble.retry_after_s if isinstance(trouble, Again) else None
        if self._taken and (status in _AWAY or isinstance(trouble, _NEVER_SENT)):
            self._looks += 1
            if now - self._since >= self._retries.outage_s:
                raise NotSent(self._id, self._failed + self._looks, _why(trouble))
            first_s, most_s = self._retries.first_s, self._retries.most_s
            if after is not None:
                return min(after, most_s) + self._jitter() * first_s
            return self._jitter() * min(MOST_AWAY_S, most_s, first_s * 2.0 ** min(self._looks, 30))
        in_time = now - self._since < self._retries.outage_s
        if status == _RATE and after is not None and after <= self._retries.most_s and in_time:
            # A tenant's own limit, with the time at which there is room again: a map goes on at that rate.
            return after + self._jitter() * self._retries.first_s
        self._taken |= not refused and not isinstance(trouble, _NEVER_SENT)
        self._failed += 1
        pause = self._retries.wait_s(self._failed, after, self._jitter)
        if pause is not None:
            return pause
        if isinstance(trouble, Again) and status in _REFUSED:
            raise trouble.refusal
        raise NotSent(self._id, self._failed + self._looks, _why(trouble))


def _why(trouble: Again | Exception) -> str:
    exc = trouble.refusal if isinstance(trouble, Again) else trouble
    return f"{type(exc).__name__}: {exc}" if str(exc) else type(exc).__name__
