"""What is known of one call while it is made."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from typing import Any

from workers.backends.remote_faults import Trouble
from workers.backends.remote_keys import Keys
from workers.backends.remote_retries import Happened, Policy, pause_s


class Attempts:
    """What is known of one call: `sent` whether the request of now has left, `unknown` whether an earlier one
    may have been carried out. `keys` are those that it began with.
    """

    def __init__(self, policy: Policy, until: float, keys: Keys | None = None) -> None:
        self.keys = keys or Keys()
        self.until = until
        self.number = 0
        self.sent = False
        self.unknown = False
        self._policy = policy

    async def trace(self, event: str, _: Mapping[str, Any]) -> None:
        if event.endswith("send_request_headers.started"):
            self.sent = True

    def pause(self, trouble: Trouble) -> float | None:
        self.unknown = self.unknown or not trouble.free
        happened = Happened(trouble.free, trouble.passing, trouble.after_s)
        left_s = self.until - time.monotonic()
        return pause_s(happened, self.number, left_s, self._policy, random.random())

    def last(self, trouble: Trouble) -> Trouble:
        """The trouble that the call ends with: free only where no attempt may have been carried out."""
        text = str(trouble)
        if trouble.after_s is not None and trouble.after_s >= self.until - time.monotonic():
            text += f"; it asks to wait {trouble.after_s:.0f} s, which is too late for this call"
        if self.number > 1:
            text += f" (attempt {self.number})"
        return Trouble(text, code=trouble.code, free=trouble.free and not self.unknown)
