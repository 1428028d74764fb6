"""What an OpenAI-compatible service answers, as an Answer: pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from schemas.messages import Failure
from workers.backends import Answer
from workers.backends.remote_faults import Refusal, Trouble
from workers.errors import BadOutput

Check = Callable[[Any], None]
"""Raises BadOutput for a value that the card's output schema refuses."""

_MOST, _HUGE = 1e12, 1e300
_OPERATOR = "it does not take one of the options that are sent; look at {} in the backend's options"
_REFUSALS = {
    "insufficient_quota": Refusal("the account has nothing left to spend"),
    "billing_hard_limit_reached": Refusal("the account has reached its limit"),
    "context_length_exceeded": Refusal("the prompt is longer than the model takes", "bad_input"),
    "exceed_context_size_error": Refusal("the prompt is longer than the model takes", "bad_input"),
    "content_filter": Refusal("its content filter refuses these inputs", "bad_input"),
    "content_policy_violation": Refusal("its content filter refuses these inputs", "bad_input"),
    "model_not_found": Refusal("it has no such model; look at the option model"),
}
_PARAMETERS = frozenset(
    {
        "logprobs",
        "max_tokens",
        "max_completion_tokens",
        "temperature",
        "response_format",
        "dimensions",
        "encoding_format",
        "model",
    }
)


class Reading(NamedTuple):
    """How a chat's answer is read: the name of its output, and a check of JSON where JSON is asked for."""

    output: str = "text"
    check: Check | None = None


def chat_answer(said: Any, how: Reading) -> Answer:
    """The first choice of a chat completion. Output `{"text": ...}`, with `truncated: true` where the answer
    ended at `max_tokens`, or the JSON value that was asked for.

    Raises:
        Trouble: it is no chat completion.
    """
    choice = _first(said, "choices")
    message = choice.get("message")
    if not isinstance(message, dict):
        raise Trouble("answered something else than a chat completion")
    usage = usage_of(said)
    text, calls = message.get("content"), message.get("tool_calls")
    finish = choice.get("finish_reason")
    if finish == "content_filter" or message.get("refusal"):
        return _bad("the model refused to answer, or its answer was withheld", usage)
    if not isinstance(text, str) and not calls:
        return _bad("the model answered no text", usage)
    confidence = confidence_of(choice.get("logprobs"))
    if how.check is not None:
        return _json(text, confidence, usage, how.check, cut=finish == "length")
    output: dict[str, Any] = {how.output: text or ""}
    if calls:
        output["tool_calls"] = calls
    if finish == "length":
        output["truncated"] = True
    return Answer(output, confidence, None, usage)


def embeddings_answer(said: Any, texts: int, *, single: bool, dimensions: int | None) -> Answer:
    """Output `{"embedding": [...]}`, or `{"embeddings": [[...], ...]}` in the order of the texts.

    Raises:
        Trouble: not one vector a text, of equal lengths and finite numbers.
    """
    _first(said, "data")
    found = said["data"]
    placed = [item.get("index", i) if isinstance(item, dict) else None for i, item in enumerate(found)]
    if sorted(map(str, placed)) != sorted(map(str, range(texts))):
        raise Trouble(f"answered {len(found)} embeddings, not one for each of {texts} texts")
    vectors = [item.get("embedding") for _, item in sorted(zip(placed, found, strict=True))]
    if not all(map(_is_vector, vectors)):
        raise Trouble("answered an embedding that is no list of finite numbers")
    if len({len(vector) for vector in vectors}) > 1 or (dimensions and len(vectors[0]) != dimensions):
        raise Trouble(f"answered embeddings of {len(vectors[0])} numbers, not of the length wanted")
    return Answer(
        {"embedding": vectors[0]} if single else {"embeddings": vectors}, None, None, usage_of(said)
    )


def confidence_of(logprobs: Any) -> float | None:
    """The geometric mean of the tokens' probabilities: exp of the mean log-probability, within 0 and 1.

    It falls with each doubtful token and not with the length. It says how sure the model was of its words,
    not that they are true. None where there are no log-probabilities, or such as are none.
    """
    found = logprobs.get("content") if isinstance(logprobs, dict) else None
    if not isinstance(found, list) or not found:
        return None
    values: list[Any] = [token.get("logprob") if isinstance(token, dict) else None for token in found]
    if not all(_is_number(value) and value <= 1e-3 for value in values):
        return None
    return min(1.0, math.exp(math.fsum(values) / len(values)))


def usage_of(said: Any) -> dict[str, float]:
    """`tokens`, `prompt_tokens` and `completion_tokens`, as far as the service counted them."""
    told = said.get("usage") if isinstance(said, dict) else None
    if not isinstance(told, dict):
        return {}
    names = {
        "prompt_tokens": "prompt_tokens",
        "completion_tokens": "completion_tokens",
        "total_tokens": "tokens",
    }
    usage = {
        name: float(told[theirs])
        for theirs, name in names.items()
        if _is_number(told.get(theirs)) and 0 <= told[theirs] <= _MOST
    }
    if "prompt_tokens" in usage and "completion_tokens" in usage:
        usage.setdefault("tokens", usage["prompt_tokens"] + usage["completion_tokens"])
    return usage


def explain(status: int, body: bytes) -> Refusal | None:
    """What the body of a refusal adds to its status; its own words, which may quote the prompt, are not
    passed on.
    """
    del status
    try:
        said = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    error = said.get("error") if isinstance(said, dict) else None
    if not isinstance(error, dict):
        return None
    for name in ("code", "type"):
        word = error.get(name)
        if isinstance(word, str) and word in _REFUSALS:
            return _REFUSALS[word]
    parameter = error.get("param")
    if isinstance(parameter, str) and parameter in _PARAMETERS:
        return Refusal(_OPERATOR.format(parameter))
    return None


def _json(text: Any, confidence: float | None, usage: dict[str, float], check: Check, *, cut: bool) -> Answer:
    if cut:
        return _bad("the answer was cut off at max_tokens before its JSON ended", usage)
    try:
        value = msgspec.json.decode(text if isinstance(text, str) else "")
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return _bad("the model answered something else than JSON", usage)
    try:
        check(value)
    except BadOutput as error:
        return _bad(str(error), usage)
    return Answer(value, confidence, None, usage)


def _bad(text: str, usage: dict[str, float]) -> Answer:
    return Answer(error=Failure(code="bad_output", message=text), usage=usage)


def _first(said: Any, name: str) -> dict[str, Any]:
    found = said.get(name) if isinstance(said, dict) else None
    if not isinstance(found, list) or not found or not isinstance(found[0], dict):
        raise Trouble(f"answered JSON without {name}")
    return found[0]


def _is_vector(value: Any) -> bool:
    return isinstance(value, Sequence) and len(value) > 0 and all(map(_is_number, value))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and -_HUGE < value < _HUGE
