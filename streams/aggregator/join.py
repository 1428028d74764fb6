"""One request's open join: a pure state machine from plan, partials, checkpoint and time to dispatches and a
close."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from schemas.claims import as_value
from schemas.ids import SubtaskId, parse_subtask_id, scoped, subtask_id
from schemas.messages import Checkpoint, Failure, Partial, Plan, Side, Trigger
from streams.aggregator.progress import Progress
from streams.privacy.masks import BadMask, restore
from streams.references import Unresolved, resolve

_NONE: frozenset[tuple[str, int]] = frozenset()
CANCELLED = Failure(
    code="cancelled", message="its caller cancelled it; ask again under another id for an answer"
)
_FORBIDDEN = Failure(
    code="no_placement", message="the privacy verdict closes the cloud to this request; start a local worker"
)


class Dispatch(NamedTuple):
    """A command: send that attempt of `step` with these inputs."""

    step: str
    attempt: int
    trigger: Trigger
    inputs: dict[str, Any]


class Join:
    """Facts go in by `take`, `replace`, `restore`, `refuse` and `attempt_failed`; `advance` draws the
    conclusions.

    The facts alone can be taken in while a takeover is still reading the log; the conclusions are then drawn
    once.
    `is_over` says that the answer is due (see answers.answer). `at` and `now` are ms on the broker's clock;
    `at` is the append time of the record. First attempts of steps that wait for nothing are the router's: it
    sends them together with the plan and again if it dies, so they count as started when the plan was
    appended.
    `offsets`, `size`, `scheduled` and `checkpoint_at` are the table's book-keeping; `unsent` are the (step,
    attempt) pairs that are dispatched and still wait for their examination; `heard_at` is when the last
    partial was appended.
    """

    __slots__ = (
        "checkpoint_at",
        "costs",
        "doom",
        "heard_at",
        "id",
        "is_over",
        "offsets",
        "partials",
        "plan",
        "scheduled",
        "size",
        "steps",
        "unsent",
    )

    def __init__(self, plan: Plan, at: int) -> None:
        self.id = scoped(plan.request.tenant, plan.request.id)
        self.doom: Failure | None = None
        self.is_over = False
        self.partials: dict[str, Partial] = {}
        self.costs: dict[str, float] = {}
        self.offsets: list[int] = []
        self.size = 0
        self.scheduled: float = float("inf")
        self.checkpoint_at = 0
        self.heard_at = 0
        self.unsent: frozenset[tuple[str, int]] = _NONE
        self._adopt(plan, at)

    @classmethod
    def restore(cls, checkpoint: Checkpoint, at: int) -> Join:
        """The join as it was when the checkpoint was written."""
        join = cls(checkpoint.plan, at)
        join.merge(checkpoint, at)
        return join

    def merge(self, checkpoint: Checkpoint, at: int) -> None:
        """Take in what a checkpoint of the same request knows beyond this join."""
        for subtask, started in checkpoint.started.items():
            place = parse_subtask_id(subtask)
            step = self.steps.get(place.step)
            if step is None or place.attempt >= len(step.step.attempts):
                continue
            # Of another plan the same index may be an attempt elsewhere, which nobody has started.
            if step.step.attempts[place.attempt].side == place.side:
                step.started[place.attempt] = started
        for partial in checkpoint.partials:
            self.take(partial, parse_subtask_id(partial.subtask), at)

    def can_be_replaced_by(self, plan: Plan) -> bool:
        """Whether rules changed between the two plans, and nothing is answered nor started since by us: what
        was started may not be started again, and what waits to be sent is of the older plan."""
        return plan.rules != self.plan.rules and all(step.is_as_planned for step in self.steps.values())

    def replace(self, plan: Plan, at: int) -> None:
        """Go on under `plan`."""
        self._adopt(plan, at)

    def take(self, partial: Partial, place: SubtaskId, at: int) -> bool:
        """Take in a partial; False where it says nothing that is not known."""
        known = self.partials.get(partial.subtask)
        if known is not None and (known.error is None or partial.error is not None):
            return False
        self.partials[partial.subtask] = partial
        self.heard_at = at
        if partial.cost:
            self.costs[partial.subtask] = max(partial.cost, self.costs.get(partial.subtask, 0.0))
        if partial.error is not None and partial.error.code == CANCELLED.code:
            # The worker has read the cancellation before us: this failure must start no other attempt.
            self.refuse(CANCELLED)
        step = self.steps.get(place.step)
        if step is not None:
            step.take(self._unmasked(partial, place.side), place.side, place.attempt, at)
        return True

    def refuse(self, failure: Failure) -> None:
        """Let the whole request fail at the next `advance`; the first reason stays."""
        self.doom = self.doom or failure

    def attempt_failed(self, step: str, index: int, failure: Failure) -> None:
        """A dispatch could not be sent, so it counts as an attempt that failed."""
        self.steps[step].failures[index] = failure

    def advance(self, now: int) -> list[Dispatch]:
        """The dispatches that are due. Sets `is_over` where the answer is."""
        dispatches: list[Dispatch] = []
        if self.is_over:
            return dispatches
        if self.doom is not None or self.plan.answer is not None:
            self.is_over = True
            return dispatches
        if now >= self.plan.request.deadline:
            for step in self.steps.values():
                step.settle_for_weak()
            self.is_over = True
            return dispatches
        open_steps = [step for step in self.steps.values() if not step.is_decided]
        while any([self._move(step, now, dispatches) for step in open_steps]):  # noqa: C419 - each moves
            open_steps = [step for step in open_steps if not step.is_decided]
        if open_steps and not any(step.started for step in open_steps):
            _break_circle(open_steps)
            open_steps = []
        self.is_over = not open_steps
        return dispatches

    def due(self) -> int:
        """When `advance` must be called at the latest."""
        deadline = self.plan.request.deadline
        for step in self.steps.values():
            due = step.due()
            if due is not None and due < deadline:
                deadline = due
        return deadline

    def checkpoint(self) -> Checkpoint:
        """Everything a new owner must know. What could not be sent was not started: it is tried again."""
        started: dict[str, int] = {}
        for step in self.steps.values():
            for index, at in step.started.items():
                subtask = subtask_id(self.id, step.name, step.step.attempts[index].side, index)
                was_refused = index in step.failures and subtask not in self.partials
                if (step.name, index) not in self.unsent and not was_refused:
                    started[subtask] = at
        return Checkpoint(plan=self.plan, partials=tuple(self.partials.values()), started=started)

    def _adopt(self, plan: Plan, at: int) -> None:
        self.plan = plan
        self.steps: dict[str, Progress] = {}
        for step in plan.steps:
            progress = Progress(step)
            if not step.after and step.attempts:
                progress.started[0] = at
            self.steps[step.name] = progress

    def _unmasked(self, partial: Partial, side: Side) -> Partial:
        """What the cloud said of masked inputs, with the originals in place. `partials` keeps it as it came:
        a checkpoint must not unmask twice."""
        mask = self.plan.mask
        if not mask or side != "cloud" or partial.error is not None:
            return partial
        try:
            return msgspec.structs.replace(partial, output=restore(partial.output, mask))
        except BadMask:
            failure = Failure(
                code="internal", message="the plan's mask cannot be taken off; the plan is at fault"
            )
            return msgspec.structs.replace(partial, output=None, confidence=None, error=failure)

    def _move(self, step: Progress, now: int, dispatches: list[Dispatch]) -> bool:
        """Start what is due on one step; whether anything changed."""
        is_reached = step.started or not step.step.after
        chosen = step.next_attempt(now) if is_reached else self._first_attempt(step)
        if chosen is None:
            return step.is_decided
        index, trigger = chosen
        plan = self.plan
        if step.step.attempts[index].side == "cloud" and not plan.request.privacy.cloud_allowed:
            step.start(index, trigger, now)
            step.failures[index] = _FORBIDDEN
            return True
        try:
            inputs = resolve(step.step.inputs, plan.inputs, plan.params, plan.query, self._outputs(step))
        except Unresolved as error:
            step.failure = Failure(code="bad_input", message=str(error))
            return True
        step.start(index, trigger, now)
        dispatches.append(Dispatch(step.name, index, trigger, inputs))
        return True

    def _first_attempt(self, step: Progress) -> tuple[int, Trigger] | None:
        for name in step.step.after:
            earlier = self.steps.get(name)
            if earlier is None:
                message = f"comes after step {name}, which the plan does not have"
                step.failure = Failure(code="internal", message=message)
                return None
            if earlier.failure is not None:
                message = f"not run: step {name} before it failed: {earlier.failure.message}"
                step.failure = Failure(code=earlier.failure.code, message=message)
                return None
            if earlier.answer is None:
                return None
        return (0, "first") if step.step.attempts else step.next_attempt(0)

    def _outputs(self, step: Progress) -> dict[str, Any]:
        answers = ((name, self.steps[name].answer) for name in step.step.after if name in self.steps)
        return {
            name: answer.output if answer.claim is None else as_value(answer.claim)
            for name, answer in answers
            if answer is not None
        }


def _break_circle(steps: Iterable[Progress]) -> None:
    """Fail steps that wait for each other: nothing will ever start them."""
    for step in steps:
        step.failure = Failure(code="internal", message="the plan's steps wait for each other in a circle")
