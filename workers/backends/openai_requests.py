"""What is posted for a row: pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from workers.backends import Row
from workers.backends.openai_prices import Tokens, prompt_tokens
from workers.backends.openai_prompts import images_in, messages_of, value_of
from workers.backends.openai_settings import Settings
from workers.errors import BadInput


class Request(NamedTuple):
    """A body of JSON, and the most tokens it can come to. `texts` are to be embedded; `single`: one alone."""

    body: bytes
    most: Tokens
    texts: int = 0
    single: bool = False


def request_of(row: Row, how: Settings, schema: Mapping[str, Any]) -> Request:
    """The request for a row; `schema` is what JSON answers follow.

    Raises:
        BadInput: inputs that make none, or one whose cost would not be bounded.
    """
    return _chat(row, how, schema) if how.mode == "chat" else _embeddings(row, how)


def _chat(row: Row, how: Settings, schema: Mapping[str, Any]) -> Request:
    messages = messages_of(row, how.prompting)
    images = images_in(messages)
    if len(images) > how.prompting.max_images:
        most = how.prompting.max_images
        raise BadInput(f"{len(images)} images are too many; at most {most} (the backend's option max_images)")
    answer = _answer_tokens(row, how)
    body: dict[str, Any] = {"model": how.model, "messages": messages, how.token_field: answer, **how.extra}
    body |= {
        name: row.params[name] for name in how.pass_params if name in row.params and name != "max_tokens"
    }
    if how.logprobs:
        body["logprobs"] = True
    if how.json == "object":
        body["response_format"] = {"type": "json_object"}
    elif how.json == "schema":
        named = {"name": "answer", "schema": dict(schema), "strict": True}
        body["response_format"] = {"type": "json_schema", "json_schema": named}
    written = _written(body)
    # The addresses of images are no tokens: an image costs what it costs.
    return Request(written, _bounded(how, len(written) - sum(map(len, images)), len(images), answer))


def _embeddings(row: Row, how: Settings) -> Request:
    many = row.inputs.get("texts")
    texts = value_of(row, "text") if many is None else many
    single = isinstance(texts, str)
    listed = [texts] if single else texts
    if not isinstance(listed, list | tuple) or not listed:
        raise BadInput("inputs.text is missing or no text; inputs.texts is a list of texts")
    if not all(isinstance(text, str) and text for text in listed):
        raise BadInput("inputs.texts holds something that is no text, or an empty one")
    body: dict[str, Any] = {"model": how.model, "input": texts, "encoding_format": "float", **how.extra}
    if how.dimensions:
        body["dimensions"] = how.dimensions
    written = _written(body)
    return Request(written, _bounded(how, len(written), 0, 0), len(listed), single)


def _answer_tokens(row: Row, how: Settings) -> int:
    """The most tokens of the answer: the option's, or fewer where params ask for fewer and may."""
    wanted = row.params.get("max_tokens") if "max_tokens" in how.pass_params else None
    if wanted is None:
        return how.tokens.answer
    if not isinstance(wanted, int) or isinstance(wanted, bool) or wanted < 1:
        raise BadInput("params.max_tokens is no whole number above 0")
    return min(how.tokens.answer, wanted)


def _bounded(how: Settings, written: int, images: int, answer: int) -> Tokens:
    if written > how.max_prompt_bytes:
        raise BadInput(
            f"the prompt takes {written} bytes; at most {how.max_prompt_bytes} (the backend's option "
            "max_prompt_bytes)"
        )
    return Tokens(prompt_tokens(written, images, how.image_tokens), answer)


def _written(body: Mapping[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(body)
    except (TypeError, ValueError, RecursionError) as error:
        raise BadInput("the inputs cannot be written as JSON") from error
