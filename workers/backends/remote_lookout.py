"""Looks for a service that calls found away, until it is back."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable

from workers.backends.remote_faults import Trouble
from workers.backends.remote_reach import EVERY_S, Reach, Sight

log = logging.getLogger(__name__)

LOOK_S = 1.5
"""The longest that a look may take."""
CONNECT_S = 1.0

Look = Callable[[], Awaitable[Sight]]
"""Asks the service something free; bounded by LOOK_S, and raises nothing that a service can bring about."""


class Lookout:
    """What is known of a service. All but `known` is called on the loop that the calls run on; without `look`
    nothing is ever known.
    """

    def __init__(self, name: str, look: Look | None) -> None:
        self._name = name
        self._look = look
        self._reach = Reach()
        self._task: asyncio.Task[None] | None = None
        self._wake, self._looked = asyncio.Event(), asyncio.Event()

    @property
    def known(self) -> bool | None:
        """Whether the service is there; None: not known, or never asked. From any thread."""
        return self._reach.known

    def note(self, there: bool | None) -> None:
        """What a call has found, as `Trouble.there`."""
        if self._look is None or there is None:
            return
        if there:
            if self._reach.known is False:
                log.info("%s: the service answers again", self._name)
            self._reach.answered()
            return
        self._reach.failed(time.monotonic(), random.random())
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._watch(), name=f"lookout of {self._name}")

    async def admit(self) -> None:
        """Let a call pass. Where the service is away look once more, as soon as that may be.

        Raises:
            Trouble: it still is.
        """
        if self._reach.known is not False:
            return
        self._reach.hasten(time.monotonic())
        looked = self._looked
        self._wake.set()
        await looked.wait()
        if self._reach.known is False:
            text = f"was not asked: it is away, and looked for every {EVERY_S:.0f} s"
            raise Trouble(text, free=True)

    async def _watch(self) -> None:
        """Look until the service is there."""
        try:
            while (due := self._reach.due) is not None:
                if (wait_s := due - time.monotonic()) > 0:
                    await self._rest(wait_s)
                else:
                    await self._once()
        finally:
            self._tell()

    async def _rest(self, wait_s: float) -> None:
        self._wake.clear()
        try:
            async with asyncio.timeout(wait_s):
                await self._wake.wait()
        except TimeoutError:
            return

    async def _once(self) -> None:
        assert self._look is not None
        self._reach.begin(time.monotonic(), random.random())
        before = self._reach.known
        try:
            async with asyncio.timeout(LOOK_S):
                sight = await self._look()
        except TimeoutError:
            sight = "refuses"
        except Exception:  # a bug here must not shut a service off for good
            log.exception("%s: the look whether its service is there broke", self._name)
            sight = "there"
        self._reach.saw(sight, time.monotonic())
        known = self._reach.known
        if known is not before and known is not None:
            log.log(
                logging.INFO if known else logging.WARNING,
                "%s: the service is %s",
                self._name,
                "there" if known else f"away; it is looked for every {EVERY_S:.0f} s",
            )
        self._tell()

    def _tell(self) -> None:
        """Wake the calls that wait for a look."""
        self._looked.set()
        self._looked = asyncio.Event()
