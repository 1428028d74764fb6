"""Capabilities that cost nothing, and one that kills its process when asked to."""

from __future__ import annotations

import os
import signal
from typing import Any

from workers.backends.function import capability

SURE, UNSURE = 0.97, 0.5
UNSURE_EVERY = 10
"""Every tenth local answer is not good enough, and the cloud is asked."""


@capability("local/fault/light", calibrated=True)
def light(n: int) -> tuple[dict[str, Any], float]:
    """Answers with its number, now and then without being sure."""
    return {"n": n}, UNSURE if n % UNSURE_EVERY == 0 else SURE


@capability("cloud/fault/light", cost=0.001, calibrated=True)
def light_in_the_cloud(n: int) -> tuple[dict[str, Any], float]:
    """The same answer, always sure."""
    return {"n": n}, SURE


@capability("local/fault/step")
@capability("cloud/fault/step", cost=0.001)
def step(n: int) -> dict[str, Any]:
    """One step of several."""
    return {"n": n + 1}


@capability("local/fault/killer")
def killer(n: int, kill: bool = False) -> dict[str, Any]:
    """Ends its process as a segmentation fault would."""
    if kill:
        os.kill(os.getpid(), signal.SIGKILL)
    return {"n": n}
