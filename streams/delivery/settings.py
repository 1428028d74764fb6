"""Bounds and times of an inlet."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class InletSettings:
    """Bounds and times. `pausing` is off for `joins` alone: what closes a join stands behind what opens
    it."""

    group: str
    session_s: float = 6.0
    batch_records: int = 500
    window_records: int = 2000
    window_bytes: int = 64 * 1024 * 1024
    pausing: bool = True
    commit_every_s: float = 0.2
    prove_every_s: float = 1.0
    drain_s: float = 3.0
    wait_s: float = 5.0
    poll_s: float = 0.2
    leave: bool = False
