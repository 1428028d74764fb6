"""Why a result is what it is, in plain words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from edgeway.explain_words import (
    CONSTRAINTS,
    DEGRADED,
    DONE,
    FAILURES,
    PLACES,
    PLANNED,
    RULES,
    Tense,
    privacy_reasons,
    words,
)
from schemas.messages import Decision, Result, Side, Verdict

__all__ = ["CONSTRAINTS", "FAILURES", "PLACES", "RULES", "explain", "of_privacy", "planned"]


def explain(result: Result) -> list[str]:
    """Sentences for each decision of `result`, in their order, then for what else the caller should know."""
    is_kept = result.cached and "stale_cache" not in result.degraded
    first = ["The answer to an equal request was still kept: nothing ran for this one."] if is_kept else []
    lines = [_decided(decision, DONE) + "".join(_answered(decision, result)) for decision in result.decisions]
    notes = [_finished(line, decision, DONE) for line, decision in zip(lines, result.decisions, strict=True)]
    return [*first, *notes, *_outcome(result)]


def planned(decisions: Iterable[Decision]) -> list[str]:
    """A sentence for each decision that was made and not carried out."""
    return [_finished(_decided(decision, PLANNED), decision, PLANNED) for decision in decisions]


def of_privacy(verdict: Verdict) -> str | None:
    """What privacy decided, None where nothing is sensitive."""
    if verdict.level == "normal":
        return None
    why = privacy_reasons(verdict.reasons)
    because = f" ({why})" if why else ""
    if verdict.masked:
        return f"Sensitive{because}: the cloud gets placeholders instead of what was found."
    return f"Sensitive{because}: it stays at the edge."


def _decided(decision: Decision, tense: Tense) -> str:
    if decision.side is None:
        text = f"Step {decision.step} {tense.runs} nowhere"
    else:
        where = PLACES[decision.side]
        text = f"Step {decision.step} {tense.goes} {where}: {_reason(decision, decision.side, tense)}"
    if decision.capability:
        text += f"; of those that can do it, {decision.capability} was chosen"
    if decision.expected is not None:
        text += f"; the edge's answer was expected to be enough with a chance of {decision.expected:.2f}"
    return text + "".join(_closed(decision, tense))


def _finished(text: str, decision: Decision, tense: Tense) -> str:
    if decision.reserved:
        # Added last, as the answer is more to the point than its price.
        text += f"; it {tense.may_cost} {decision.reserved:g} at most"
    if decision.note:
        text += f" ({decision.note})"
    return text + "."


def _reason(decision: Decision, side: Side, tense: Tense) -> str:
    if decision.rule == "score" and decision.scores:
        return _score(decision, side, tense)
    if decision.rule in CONSTRAINTS and decision.rule not in RULES:
        return f"the other side {tense.closed}"
    text = RULES.get(decision.rule, f"by the rule {words(decision.rule)}")
    return text + _threshold(decision, tense)


def _threshold(decision: Decision, tense: Tense) -> str:
    if decision.threshold is None:
        return ""
    return f"; below a confidence of {decision.threshold:.2f} the other side {tense.asked}"


def _score(decision: Decision, side: Side, tense: Tense) -> str:
    mine = decision.scores.get(side)
    if mine is None:
        return RULES["score"]
    others = [
        f"{value:.2f} for {PLACES.get(name, name)}" for name, value in decision.scores.items() if name != side
    ]
    against = f" against {', '.join(others)}" if others else ""
    weightiest = _weightiest(decision, side)
    return f"it {tense.scores} {mine:.2f}{against}{weightiest}{_threshold(decision, tense)}"


def _weightiest(decision: Decision, side: Side) -> str:
    """The factor whose weighted lead over the other side is the largest."""
    mine = decision.factors.get(side, {})
    other = next((factors for name, factors in decision.factors.items() if name != side), {})

    def lead(name: str) -> float:
        rival = other[name].value if name in other else 0.0
        return mine[name].weight * (mine[name].value - rival)

    if not mine:
        return ""
    name = max(sorted(mine), key=lead)
    measured = "measured" if mine[name].source == "live" else "assumed"
    return f", most of all for {words(name)} ({mine[name].value:.2f}, {measured})"


def _closed(decision: Decision, tense: Tense) -> Iterator[str]:
    if decision.rule == "fixed_side":
        # The other side was never in question.
        return
    for side, names in decision.forbidden.items():
        reasons = " and ".join(CONSTRAINTS.get(name, words(name)) for name in names)
        if reasons:
            yield f"; {PLACES.get(side, side)} {tense.closed}: {reasons}"


def _answered(decision: Decision, result: Result) -> Iterator[str]:
    if decision.step in result.missing:
        if decision.side is not None:
            yield f"; {_unanswered(decision.step, result)}"
        return
    side = result.sides.get(decision.step)
    if side is not None and decision.side is not None and side != decision.side:
        yield f"; its answer was not enough, and that of {PLACES[side]} was taken"


def _unanswered(step: str, result: Result) -> str:
    """Why `step` has no answer: the result's error tells of one step, and a merged rest of none."""
    error = result.error
    if error is None:
        return "it gave no answer"
    others = [name for name in result.missing if name != step]
    if error.code != "deadline_exceeded" and any(error.message.startswith(f"step {o}: ") for o in others):
        return "its answer was no longer needed" if result.status == "error" else "it gave no answer"
    return FAILURES.get(error.code, f"it ended with {words(error.code)}")


def _inexact(result: Result) -> str:
    reasons = [DEGRADED[word] for word in result.degraded if word in DEGRADED]
    if reasons:
        age = "" if result.age_ms is None else f" ({result.age_ms // 1000} s old)"
        return "; ".join(reasons) + age
    if any("no better place was allowed" in warning for warning in result.warnings):
        return "no better place was allowed"
    return "a better one did not come in time"


def _outcome(result: Result) -> Iterator[str]:
    if result.privacy is not None and (told := of_privacy(result.privacy)):
        yield told
    if result.error is not None:
        yield f"It failed: {result.error.message} ({words(result.error.code)})."
    if result.missing and result.status != "error":
        yield f"Without an answer: {', '.join(result.missing)}; the rest was merged."
    if result.approximate:
        yield f"The answer is approximate: {_inexact(result)}."
    if result.cost:
        yield f"It cost {result.cost:g}."
