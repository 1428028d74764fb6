"""What one lane's joins may take, and how long things are waited for."""

from __future__ import annotations

from dataclasses import dataclass

from schemas.messages import Status

MIB = 2**20


@dataclass(frozen=True, slots=True)
class Limits:
    """Per lane (partition). Bytes are those of the records; in memory they take about four times as much.

    `joins`, `bytes`: open joins and all that is held; beyond them new plans are answered `overloaded`.
    `orphans`, `orphan_ms`: partials that wait for their plan.
    `checkpoint_ms`: how long a join is open before it is written again, and again.
    `answered*`: ids remembered so that what comes late is known as late (see Answered).
    `timers`: most timers that one tick runs, so that no tick holds the loop for long.
    """

    joins: int = 10_000
    bytes: int = 128 * MIB
    orphans: int = 10_000
    orphan_ms: int = 5_000
    checkpoint_ms: int = 30_000
    answered: int = 2_048
    answered_least_ms: int = 30_000
    answered_most: int = 262_144
    answered_ms: int = 600_000
    timers: int = 1_000


@dataclass(slots=True)
class Counts:
    """What happened beside the ordinary; counted from the start of the process.

    orphans: partials dropped because no plan came. late: partials after the answer. duplicates: records that
    say what is known. conflicts: ids used again for other content. shed: plans answered `overloaded`.
    cancelled: requests that their callers no longer wanted. degraded: joins not checkpointed, takeovers that
    could not read `results`. ok, partial, error: answers by status. approximate: answers so marked.
    checkpoints, dispatches: how many were written.
    """

    orphans: int = 0
    late: int = 0
    duplicates: int = 0
    conflicts: int = 0
    shed: int = 0
    cancelled: int = 0
    degraded: int = 0
    ok: int = 0
    partial: int = 0
    error: int = 0
    approximate: int = 0
    checkpoints: int = 0
    dispatches: int = 0

    def answered(self, status: Status, *, approximate: bool) -> None:
        """One more answer."""
        setattr(self, status, getattr(self, status) + 1)
        self.approximate += approximate
