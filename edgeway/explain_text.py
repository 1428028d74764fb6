"""One explained request for people: pure text, the same for the same record."""

from __future__ import annotations

from collections.abc import Iterator

from edgeway.explain import of_privacy, planned
from edgeway.explain_record import Explained, Origin, ShownStep
from edgeway.explain_words import AT, TRIGGERS
from edgeway.wrapping import wrapped
from schemas.messages import Decision, Factor, Verdict

ORIGINS: dict[Origin, str] = {
    "assumed": "assumed: everything that the rules use is alive, unmeasured, and free but for their prices",
    "given": "as the file of --registry says",
    "live": "as the heartbeats of now say",
}
PURSES = {
    "open": "not asked",
    "spent": "taken as spent",
    "away": "taken as unreachable",
}


def text_of(explained: Explained, width: int = 100) -> list[str]:
    """The lines of one request, at most `width` columns wide."""
    lines: list[str] = []
    for indent, text in _paragraphs(explained):
        lines += wrapped(text, width, indent)
    return lines


def preface(rules: str, origin: Origin, purse: str) -> str:
    """What holds for all requests of a run."""
    return f"rules {rules}; capabilities {ORIGINS[origin]}; budget {PURSES[purse]}"


def _paragraphs(explained: Explained) -> Iterator[tuple[str, str]]:
    yield "", _head(explained)
    told = None if explained.privacy is None else of_privacy(_verdict(explained))
    if told is not None:
        yield "  ", told
    if explained.error is not None:
        yield "  ", f"Refused: {explained.error.message} ({explained.error.code})."
    if explained.steps:
        yield "  ", _terms(explained)
        yield from _tree(explained.steps)
    if explained.merge is not None and len(explained.steps) > 1:
        yield "  ", f"Merged by {explained.merge.strategy}."
    for decision, sentence in zip(explained.decisions, planned(explained.decisions), strict=True):
        yield "  ", sentence
        yield "    ", _fired(decision)
        yield from _factors(decision)


def _head(explained: Explained) -> str:
    if explained.privacy is None:
        return f"{explained.id}: no request"
    leaves = "the cloud may have it" if explained.cloud_allowed else "it must not leave the edge"
    task = "no task" if explained.task is None else f"task {explained.task}"
    return f"{explained.id}: {task}, {leaves}"


def _verdict(explained: Explained) -> Verdict:
    said = explained.privacy
    assert said is not None
    return Verdict(
        level="normal" if said.level == "normal" else "high", reasons=said.reasons, masked=said.masked
    )


def _terms(explained: Explained) -> str:
    cost = f"costs at most {explained.cost_bound:g}" if explained.cost_bound else "costs nothing"
    text = f"Plan: to be answered within {explained.deadline_ms} ms, {cost}"
    if explained.reservations:
        held = sum(each.cost for each in explained.reservations)
        text += f", {held:g} to be set aside where there is a budget"
    return text + "."


def _tree(steps: tuple[ShownStep, ...]) -> Iterator[tuple[str, str]]:
    """Each step below the last that it waits for."""
    names = {step.name for step in steps}
    below: dict[str, list[ShownStep]] = {}
    for step in steps:
        waits = [name for name in step.after if name in names]
        below.setdefault(waits[-1] if waits else "", []).append(step)

    def grow(parent: str, indent: str) -> Iterator[tuple[str, str]]:
        children = below.get(parent, [])
        for step in children:
            last = step is children[-1]
            yield indent + ("└─ " if last else "├─ "), _step(step)
            yield from grow(step.name, indent + ("   " if last else "│  "))

    yield from grow("", "    ")


def _step(step: ShownStep) -> str:
    first, *later = step.attempts
    text = f"{step.name}: {first.capability} {AT[first.side]}"
    if len(step.after) > 1:
        text += f", after {' and '.join(step.after)}"
    for attempt in later:
        when = [_trigger(name, step) for name in attempt.triggers]
        text += f"; then {attempt.capability} {AT[attempt.side]} {', '.join(when)}"
    if "weak" in {name for attempt in later for name in attempt.triggers} and step.on_slow == "wait":
        text += "; a weak answer waits for a better one until the deadline"
    return text


def _trigger(name: str, step: ShownStep) -> str:
    text = TRIGGERS.get(name, name)
    if name == "weak" and step.threshold is not None:
        return f"{text} (confidence below {step.threshold:.2f})"
    if name == "silent" and step.slow_ms is not None:
        return f"{text} for {step.slow_ms} ms"
    return text


def _fired(decision: Decision) -> str:
    closed = [f"{side} closed by {', '.join(names)}" for side, names in sorted(decision.forbidden.items())]
    return f"[{'; '.join([f'rule {decision.rule}', *closed])}]"


def _factors(decision: Decision) -> Iterator[tuple[str, str]]:
    """A line for each factor, and one for the sums."""
    sides = sorted(decision.factors, reverse=True)
    for name in dict.fromkeys(name for side in sides for name in decision.factors[side]):
        yield (
            f"    {name:9}",
            "; ".join(
                f"{side} {_product(factors[name])}"
                for side, factors in sorted(decision.factors.items(), reverse=True)
                if name in factors
            ),
        )
    if decision.scores:
        scores = (f"{side} {decision.scores[side]:.3f}" for side in sorted(decision.scores, reverse=True))
        yield f"    {'score':9}", "; ".join(scores)


def _product(factor: Factor) -> str:
    source = "measured" if factor.source == "live" else "assumed"
    return f"{factor.value:.2f} x {factor.weight:.2f} = {factor.value * factor.weight:.3f} {source}"
