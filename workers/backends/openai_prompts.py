"""Prompts and messages from a subtask's inputs: pure."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from string import Formatter
from typing import Any, NamedTuple

import msgspec

from workers.backends import Row
from workers.errors import BadInput, LoadError

IMAGES = ("image_url", "image")
"""The inputs that are images, where the options name no others."""
TEXTS = ("text", "query")
"""Where `{text}` is looked for, in this order."""

_NAME = re.compile(r"[\w-]+")
_ROLES = ("system", "developer", "user", "assistant", "tool")
_CALLERS = ("user", "assistant", "tool")
_KINDS = ((b"\x89PNG", "png"), (b"\xff\xd8\xff", "jpeg"), (b"GIF8", "gif"), (b"RIFF", "webp"))
_ADDRESS = re.compile(r"https?://|data:image/[a-z0-9.+-]+;base64,", re.IGNORECASE)


class Template:
    """A text with `{name}` where an input or param goes, `{{` and `}}` for braces. What is filled in is never
    read as a template.

    Raises:
        LoadError: a brace that does not close, or something else than a name within.
    """

    def __init__(self, text: str, option: str = "prompt") -> None:
        try:
            parts = list(Formatter().parse(text))
        except ValueError as error:
            raise LoadError(f"the option {option} is no template: {error}") from error
        self._parts: list[tuple[str, str | None]] = []
        for literal, name, form, conversion in parts:
            if name is not None and (form or conversion or not _NAME.fullmatch(name)):
                raise LoadError(f"the option {option} may hold {{NAME}} alone, and {{{{ for a brace")
            self._parts.append((literal, name))

    def fill(self, row: Row) -> str:
        """The text for a row.

        Raises:
            BadInput: a name that is neither among the inputs nor the params.
        """
        return "".join(
            literal if name is None else literal + _text(name, value_of(row, name))
            for literal, name in self._parts
        )


class Prompting(NamedTuple):
    """How messages are made: the texts of the operator, and the names of inputs that are images or whole
    conversations. At most `max_images` in all.
    """

    system: Template | None = None
    prompt: Template | None = None
    images: Sequence[str] = IMAGES
    messages: str = "messages"
    max_images: int = 0


def messages_of(row: Row, how: Prompting) -> list[dict[str, Any]]:
    """What is said to the model: the input `messages` as it is, else one message of the prompt with the
    images after it.

    Raises:
        BadInput: nothing to say, or something that the model must not be told.
    """
    given = row.inputs.get(how.messages)
    system = [] if how.system is None else [{"role": "system", "content": how.system.fill(row)}]
    if given is not None:
        return system + _checked(how.messages, given, _CALLERS if system else _ROLES)
    images = [url for name in how.images for url in _images(name, row.inputs.get(name))]
    if how.prompt is not None:
        text = how.prompt.fill(row)
    else:
        text = "" if images and not _has_text(row) else _text("text", value_of(row, "text"))
    if not text.strip() and not images:
        raise BadInput("inputs.text is empty")
    return [*system, {"role": "user", "content": _content(text, images)}]


def images_in(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """The addresses of all images of checked messages."""
    return [
        part["image_url"]["url"]
        for message in messages
        if isinstance(message.get("content"), list)
        for part in message["content"]
        if part["type"] == "image_url"
    ]


def value_of(row: Row, name: str) -> Any:
    """An input, else a param, None where it is neither; `text` may stand in `query`."""
    names = TEXTS if name == "text" else (name,)
    found = (source[name] for name in names for source in (row.inputs, row.params) if name in source)
    return next((value for value in found if value is not None and value != ""), None)


def _has_text(row: Row) -> bool:
    return value_of(row, "text") is not None


def _text(name: str, value: Any) -> str:
    if value is None:
        raise BadInput(f"inputs.{name} is missing or empty")
    if isinstance(value, str):
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        raise BadInput(f"inputs.{name} is bytes; give a text")
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError, RecursionError) as error:
        raise BadInput(f"inputs.{name} cannot be written as JSON") from error


def _content(text: str, images: Sequence[str]) -> str | list[dict[str, Any]]:
    if not images:
        return text
    parts: list[dict[str, Any]] = [{"type": "image_url", "image_url": {"url": url}} for url in images]
    return [{"type": "text", "text": text}, *parts] if text.strip() else parts


def _images(name: str, value: Any) -> list[str]:
    """The addresses of an input's images; bytes travel inside the address (RFC 2397)."""
    if value is None:
        return []
    many = value if isinstance(value, list | tuple) else [value]
    return [_image(name, one) for one in many]


def _image(name: str, value: Any) -> str:
    if isinstance(value, str):
        if not _ADDRESS.match(value):
            raise BadInput(f"inputs.{name} is no address of http or https, and no image as a data: address")
        return value
    if not isinstance(value, bytes | bytearray | memoryview):
        raise BadInput(f"inputs.{name} is a {type(value).__name__}; give an address or an image's bytes")
    raw = bytes(value)
    kind = next((kind for mark, kind in _KINDS if raw.startswith(mark)), None)
    if kind is None:
        raise BadInput(f"inputs.{name} is no image; give PNG, JPEG, GIF or WebP")
    return f"data:image/{kind};base64,{base64.b64encode(raw).decode()}"


def _checked(name: str, given: Any, roles: Sequence[str]) -> list[dict[str, Any]]:
    """The messages of a caller, each of a known role and of parts whose cost is bounded."""
    if not isinstance(given, list | tuple) or not given:
        raise BadInput(f"inputs.{name} is no list of messages")
    return [_message(f"inputs.{name}[{i}]", message, roles) for i, message in enumerate(given)]


def _message(place: str, message: Any, roles: Sequence[str]) -> dict[str, Any]:
    if not isinstance(message, dict) or message.get("role") not in roles:
        raise BadInput(f"{place} needs a role: {', '.join(roles)}")
    content = message.get("content")
    if isinstance(content, list | tuple):
        return {**message, "content": [_part(place, part) for part in content]}
    if isinstance(content, str) or (content is None and message.get("tool_calls")):
        return dict(message)
    raise BadInput(f"{place}.content is neither a text nor a list of parts")


def _part(place: str, part: Any) -> dict[str, Any]:
    kind = part.get("type") if isinstance(part, dict) else None
    if kind == "text" and isinstance(part.get("text"), str):
        return dict(part)
    if kind == "image_url":
        image = part.get("image_url")
        url = image.get("url") if isinstance(image, dict) else image
        return {
            **part,
            "image_url": {**(image if isinstance(image, dict) else {}), "url": _image(place, url)},
        }
    raise BadInput(f"{place}.content holds a part that is neither text nor image_url")
