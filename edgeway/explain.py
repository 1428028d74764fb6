"""Why a result is what it is, in plain words."""

from __future__ import annotations

from collections.abc import Iterator

from schemas.messages import Decision, Result, Side

PLACES: dict[str, str] = {"local": "the edge", "cloud": "the cloud"}

CONSTRAINTS: dict[str, str] = {
    "privacy": "the request is sensitive and must not leave the edge",
    "no_live_capability": "no worker offers the capability there now",
    "breaker_failing": "it failed too often lately",
    "breaker_slow": "it was too slow lately",
    "max_local_tokens": "the input is longer than the edge takes",
    "backlog": "the work that waits there already takes longer than is left",
    "deadline": "it would not answer in time",
    "budget": "the budget has not enough left for it",
    "max_cost": "it would cost more than the request allows",
    "unknown_cost": "nobody knows what it may cost at most",
}
"""What it means that a constraint closed a side, by the constraint's name."""

RULES: dict[str, str] = {
    "fixed_side": "the rules name this side",
    "confidence_first": "the edge is asked first and its confidence can be believed",
    "score": "it scored best",
}
"""What it means that a rule decided, by its name; a constraint decides by closing the other side."""


FAILURES: dict[str, str] = {
    "deadline_exceeded": "no answer came in time",
    "bad_input": "its inputs were refused",
    "backend_error": "its model failed",
    "bad_output": "its answer could not be published",
    "too_large": "its answer was too large",
    "result_too_large": "the answer was too large",
    "overloaded": "there was too much other work",
    "unknown_capability": "no worker offered it",
    "object_missing": "its inputs lay elsewhere and could not be had",
    "malformed": "what was sent to it could not be read",
    "unsupported_version": "what was sent to it has a version that its worker does not read",
    "merge_failed": "the answers could not be merged",
    "handler_error": "its worker failed",
    "killed_its_process": "its worker died of it",
    "unanswered": "it was never answered",
}
"""What it means for a step that its request failed, by the error's code."""


def explain(result: Result) -> list[str]:
    """Sentences for each decision of `result`, in their order, then for what else the caller should know."""
    lines = [_decided(decision, result) for decision in result.decisions]
    return [*lines, *_outcome(result)]


def _decided(decision: Decision, result: Result) -> str:
    if decision.side is None:
        text = f"Step {decision.step} could run nowhere"
    else:
        text = f"Step {decision.step} went to {PLACES[decision.side]}: {_reason(decision, decision.side)}"
    text += "".join(_closed(decision))
    text += "".join(_answered(decision, result))
    if decision.reserved:
        text += f"; {decision.reserved:g} were set aside to pay for it"
    if decision.note:
        text += f" ({decision.note})"
    return text + "."


def _reason(decision: Decision, side: Side) -> str:
    if decision.rule == "score" and decision.scores:
        mine = decision.scores.get(side)
        others = [
            f"{value:.2f} for {PLACES.get(name, name)}"
            for name, value in decision.scores.items()
            if name != side
        ]
        against = f" against {', '.join(others)}" if others else ""
        return (
            f"it scored {mine:.2f}{against}{_weightiest(decision, side)}"
            if mine is not None
            else RULES["score"]
        )
    if decision.rule in CONSTRAINTS and decision.rule not in RULES:
        return "the other side was closed"
    text = RULES.get(decision.rule, f"by the rule {_words(decision.rule)}")
    if decision.threshold is not None:
        text += f"; below a confidence of {decision.threshold:.2f} the other side is asked too"
    return text


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
    return f", most of all for {_words(name)} ({mine[name].value:.2f}, {measured})"


def _closed(decision: Decision) -> Iterator[str]:
    if decision.rule == "fixed_side":
        # The other side was never in question.
        return
    for side, names in decision.forbidden.items():
        reasons = " and ".join(CONSTRAINTS.get(name, _words(name)) for name in names)
        if reasons:
            yield f"; {PLACES.get(side, side)} was closed: {reasons}"


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
    return FAILURES.get(error.code, f"it ended with {_words(error.code)}")


def _outcome(result: Result) -> Iterator[str]:
    if result.error is not None:
        yield f"It failed: {result.error.message} ({_words(result.error.code)})."
    if result.missing and result.status != "error":
        yield f"Without an answer: {', '.join(result.missing)}; the rest was merged."
    if result.approximate:
        yield "The answer is approximate: a better one did not come in time."
    if result.cost:
        yield f"It cost {result.cost:g}."


def _words(name: str) -> str:
    return name.replace("_", " ")
