"""What calls of a model that charges by the token cost: pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

TEMPLATE_TOKENS = 256
"""Allowed for what a model's own chat template adds to what is sent."""
PER = 1e6
"""Prices are quoted for so many tokens."""


class Tokens(NamedTuple):
    """The most tokens of a call: in the prompt and in the answer."""

    prompt: int
    answer: int


class Prices(NamedTuple):
    """A call, a token of the prompt, a token of the answer; in the currency of the prices."""

    per_call: float = 0.0
    per_prompt: float = 0.0
    per_answer: float = 0.0

    def most(self, tokens: Tokens) -> float:
        """The upper bound of a call."""
        return self.per_call + self.per_prompt * tokens.prompt + self.per_answer * tokens.answer

    def cost(self, usage: Mapping[str, float], most: Tokens) -> float:
        """What a call cost by its usage; by the upper bound for what the service has not counted."""
        prompt = usage.get("prompt_tokens", float(most.prompt))
        if "completion_tokens" in usage:
            answer = usage["completion_tokens"]
        elif "tokens" in usage and "prompt_tokens" in usage:
            answer = max(0.0, usage["tokens"] - prompt)
        else:
            answer = float(most.answer)
        return self.per_call + self.per_prompt * prompt + self.per_answer * answer


def prompt_tokens(written: int, images: int, image_tokens: int) -> int:
    """The most tokens that a request of `written` bytes, without its images, can come to.

    Tokens of the byte-level and byte-fallback vocabularies in use stand for at least one byte each; the JSON
    around the texts makes up for the marks between messages.
    """
    return written + TEMPLATE_TOKENS + images * image_tokens
