"""One step of an open join: its attempts, what they answered, and which attempt comes next. Pure."""

from __future__ import annotations

from schemas.messages import Attempt, Failure, Partial, Side, Step, Trigger

SLOW_MS = 500
"""How long an attempt may be silent where the step does not say."""


class Progress:
    """What is known of a step. `started`, `failures` and `weak` are by attempt index; times in ms.

    An attempt is in flight from its dispatch until it failed or gave a weak answer. A step is decided once
    it has an `answer` or a `failure`; nothing that comes later changes that. `side` and `slot` say where the
    answer came from: `slot` is the attempt's index, None where the plan has no such attempt. `low` says that
    a local answer below the threshold was taken because the plan allows no better place.
    """

    __slots__ = (
        "answer",
        "approximate",
        "failure",
        "failures",
        "low",
        "name",
        "side",
        "slot",
        "slow_ms",
        "started",
        "step",
        "triggers",
        "weak",
    )

    def __init__(self, step: Step) -> None:
        self.step = step
        self.name = step.name
        self.slow_ms = SLOW_MS if step.slow_ms is None else step.slow_ms
        self.started: dict[int, int] = {}
        self.triggers: dict[int, Trigger] = {}
        self.failures: dict[int, Failure] = {}
        self.weak: dict[int, Partial] = {}
        self.answer: Partial | None = None
        self.side: Side | None = None
        self.slot: int | None = None
        self.approximate = False
        self.low = False
        self.failure: Failure | None = None

    @property
    def is_decided(self) -> bool:
        return self.answer is not None or self.failure is not None

    @property
    def is_untouched(self) -> bool:
        """Whether no attempt has answered in any way."""
        return not (self.is_decided or self.failures or self.weak)

    @property
    def is_as_planned(self) -> bool:
        """Whether nothing happened to the step but what its router did."""
        return self.is_untouched and self.started.keys() <= {0}

    @property
    def is_below(self) -> bool:
        """Whether the answer that was taken claims less confidence than the threshold."""
        return self.answer is not None and self._is_below(self.answer)

    @property
    def fell_back_by(self) -> Trigger | None:
        """The trigger by which the attempt that answered was started, where that is known."""
        return None if self.slot is None else self.triggers.get(self.slot)

    def start(self, index: int, trigger: Trigger, now: int) -> None:
        """Note that attempt `index` is dispatched."""
        self.started[index] = now
        self.triggers[index] = trigger

    def take(self, partial: Partial, side: Side, index: int, at: int) -> None:
        """Take in an answer to attempt `index` on `side`, whichever plan that attempt is of."""
        if self.is_decided:
            return
        attempts = self.step.attempts
        exact = index < len(attempts) and attempts[index].side == side
        if partial.error is not None:
            if exact and index not in self.weak:
                self.started.setdefault(index, at)
                self.failures[index] = partial.error
            return
        slot = index if exact else _slot(attempts, side)
        if slot is not None:
            self.started.setdefault(slot, at)
        if self._is_weak(partial, slot):
            self.weak[-1 if slot is None else slot] = partial
        else:
            self._win(partial, side, slot)

    def next_attempt(self, now: int) -> tuple[int, Trigger] | None:
        """The attempt that must start now, or None; decides the step where nothing better can come."""
        if len(self.started) == len(self.step.attempts) and self.started and self.is_untouched:
            return None  # all of them are in flight: the usual case
        flying = self._in_flight()
        if self.weak:
            return self._beyond_weak(flying, now)
        if not flying:
            found = self._pending("failed")
            if found is None:
                self.failure = next(reversed(self.failures.values()), None) or _no_attempt(self.name)
            return found
        return self._pending("silent") if now >= self._slow_at(flying) else None

    def settle_for_weak(self) -> None:
        """Answer with the best weak answer, where there is one; the later attempt's among equals."""
        if self.is_decided or not self.weak:
            return
        slot = max(self.weak, key=lambda index: (self.weak[index].confidence or 0.0, index))
        partial = self.weak[slot]
        _, _, tail = partial.subtask.rpartition("/")[0].rpartition("/")
        self._win(partial, "cloud" if tail == "cloud" else "local", slot if slot >= 0 else None)
        self.approximate = True

    def due(self) -> int | None:
        """When silence must be acted upon; None where only an answer can change anything."""
        if self.is_decided or not self.started:
            return None
        has_answer = bool(self.weak) and self.step.on_slow == "answer"
        waits = has_answer or self._pending("silent") is not None
        flying = self._in_flight() if waits else ()
        return self._slow_at(flying) if flying else None

    def _beyond_weak(self, flying: list[int], now: int) -> tuple[int, Trigger] | None:
        if not flying:
            found = self._pending("weak") or (self._pending("failed") if self.failures else None)
            if found is None:
                self.settle_for_weak()
            return found
        if now < self._slow_at(flying):
            return None
        if self.step.on_slow == "wait":
            return self._pending("silent")
        self.settle_for_weak()
        return None

    def _in_flight(self) -> list[int]:
        return [index for index in self.started if index not in self.failures and index not in self.weak]

    def _slow_at(self, flying: list[int] | tuple[int, ...]) -> int:
        return max(self.started[index] for index in flying) + self.slow_ms

    def _pending(self, trigger: Trigger) -> tuple[int, Trigger] | None:
        for index, attempt in enumerate(self.step.attempts):
            if index not in self.started and trigger in attempt.triggers:
                return index, trigger
        return None

    def _is_weak(self, partial: Partial, slot: int | None) -> bool:
        return self._is_below(partial) and any(
            "weak" in attempt.triggers and index not in self.failures and index not in self.weak
            for index, attempt in enumerate(self.step.attempts)
            if index != slot
        )

    def _is_below(self, partial: Partial) -> bool:
        threshold, confidence = self.step.threshold, partial.confidence
        # Written so that NaN counts as below. An answer that claims no confidence is taken at its word.
        return not (threshold is None or confidence is None or confidence >= threshold)

    def _win(self, partial: Partial, side: Side, slot: int | None) -> None:
        self.answer, self.side, self.slot = partial, side, slot
        if side == "local":
            below = self._is_below(partial)
            self.approximate = below or (bool(slot) and self._is_fallback(slot))
            self.low = below and not any("weak" in attempt.triggers for attempt in self.step.attempts)

    def _is_fallback(self, slot: int | None) -> bool:
        """Whether the attempt came by silence or failure; where a crash forgot the trigger, whether it may
        have."""
        if slot is None:
            return False
        known = self.triggers.get(slot)
        triggers = self.step.attempts[slot].triggers if known is None else (known,)
        return "silent" in triggers or "failed" in triggers


def _slot(attempts: tuple[Attempt, ...], side: Side) -> int | None:
    return next((index for index, attempt in enumerate(attempts) if attempt.side == side), None)


def _no_attempt(name: str) -> Failure:
    return Failure(code="internal", message=f"step {name} has no attempt to start; the plan is at fault")
