"""What the names in decisions, verdicts and errors mean, in plain words."""

from __future__ import annotations

from typing import NamedTuple

PLACES: dict[str, str] = {"local": "the edge", "cloud": "the cloud"}
AT: dict[str, str] = {"local": "at the edge", "cloud": "in the cloud"}

CONSTRAINTS: dict[str, str] = {
    "privacy": "the request is sensitive and must not leave the edge",
    "no_cloud_store": "its inputs lie in an object store, and none could be written that the cloud reads",
    "object_unread": "its inputs lie in an object store and were not read there in time and examined",
    "no_live_capability": "no worker offers the capability there now",
    "breaker_failing": "it failed too often lately",
    "breaker_away": "the service behind it cannot be reached now",
    "breaker_slow": "it was too slow lately",
    "max_local_tokens": "the input is longer than the edge takes",
    "input_schema": "the inputs are not what the capability takes there",
    "max_qps": "it gets as many calls a second as it takes already",
    "backlog": "the work that waits there already takes longer than is left",
    "deadline": "it would not answer in time",
    "latency": "it is slower than the task allows",
    "budget": "the budget has not enough left for it, or nobody knows what is left",
    "max_cost": "it would cost more than the request allows",
    "unknown_cost": "nobody knows what it may cost at most",
}
"""What it means that a constraint closed a side, by the constraint's name."""

RULES: dict[str, str] = {
    "fixed_side": "the rules name this side",
    "confidence_first": "the edge is asked first and its confidence can be believed",
    "predicted_weak": "the answer of the edge is expected to be too weak",
    "score": "it scored best",
    "cache": "the answer to equal inputs was still kept",
}
"""What it means that a rule decided, by its name; a constraint decides by closing the other side."""

DEGRADED: dict[str, str] = {
    "cloud_away": "the cloud was away",
    "cloud_slow": "the cloud did not answer in time",
    "cloud_failed": "the cloud failed",
    "cloud_refused": "the cloud was not allowed",
    "over_budget": "the budget did not allow the cloud",
    "low_confidence": "its confidence is below the threshold",
    "stale_cache": "an older answer to an equal request stands in",
}
FAILURES: dict[str, str] = {
    "deadline_exceeded": "no answer came in time",
    "bad_input": "its inputs were refused",
    "backend_error": "its model failed",
    "bad_output": "its answer could not be published",
    "too_large": "its answer was too large",
    "result_too_large": "the answer was too large",
    "overloaded": "there was too much other work",
    "over_budget": "the budget had not enough left to pay for it",
    "no_placement": "what it was to be given must not go there",
    "unknown_capability": "no worker offered it",
    "object_missing": "its inputs lay elsewhere and could not be had",
    "malformed": "what was sent to it could not be read",
    "unsupported_version": "what was sent to it has a version that its worker does not read",
    "merge_failed": "the answers could not be merged",
    "decomposer_failed": "the code that splits the request failed",
    "handler_error": "its worker failed",
    "killed_its_process": "its worker died of it",
    "unanswered": "it was never answered",
}
"""What it means for a step that its request failed, by the error's code."""

REASONS: dict[str, str] = {
    "declared": "the request declares it",
    "tenant": "the rules say so of its tenant",
    "task": "the rules say so of its task",
    "verdict_failed": "it could not be examined",
    "too_long": "it is too long to be examined",
    "too_deep": "it is nested too deep to be examined",
    "too_slow": "its examination took too long",
    "unknown_type": "it holds what cannot be examined",
}
"""What the reasons of a verdict mean; any other is a kind of finding."""

TRIGGERS: dict[str, str] = {
    "weak": "if the answer is weak",
    "failed": "if it fails",
    "silent": "if it is silent",
}
"""What starts a later attempt."""


class Tense(NamedTuple):
    """The verbs of a decision that was carried out, or of one that is only planned."""

    goes: str
    runs: str
    scores: str
    closed: str
    asked: str
    may_cost: str


DONE = Tense("went to", "could run", "scored", "was closed", "is asked too", "was to cost")
PLANNED = Tense("goes to", "can run", "scores", "is closed", "is asked too", "would cost")


def words(name: str) -> str:
    """A name as words."""
    return name.replace("_", " ")


def privacy_reasons(reasons: tuple[str, ...]) -> str:
    """Why a request is sensitive; findings by kind, never what was found."""
    said = [REASONS[name] for name in reasons if name in REASONS]
    found = [words(name) for name in reasons if name not in REASONS]
    if found:
        said.append(f"found in it: {', '.join(found)}")
    return "; ".join(said)
