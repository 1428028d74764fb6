"""`multipart/form-data` to a request: texts are its keys or inputs, files are inputs."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from schemas.claims import INLINE_BYTES
from schemas.errors import Malformed, TooLarge
from schemas.limits import MAX_RECORD_BYTES, check_size
from schemas.messages import Request
from workers.http.problems import Refused

MOST_PARTS = 64
logging.getLogger("python_multipart").setLevel(logging.ERROR)  # it warns of what callers send
MOST_INLINE = 2 * INLINE_BYTES
"""So many bytes of files travel in the record; what comes beyond goes by claim check."""
WHOLE = "request"
"""The part that is a request as `POST /route` takes it without a form."""
_OWN = frozenset((*Request.__struct_encode_fields__, "privacy_level"))
_MAPS = frozenset(("inputs", "params"))
_NUMBERS: dict[str, type[int] | type[float]] = {"deadline_ms": int, "max_cost": float, "v": int}


@dataclass(slots=True)
class Part:
    """One part of a form. `is_file` where it has a file name, which is not read otherwise."""

    name: str = ""
    content_type: str | None = None
    is_file: bool = False
    body: bytearray = field(default_factory=bytearray)


class FormReader:
    """Takes a form's bytes as they come. What it holds is bounded by whoever feeds it.

    Raises (`feed`, `parts`):
        Refused: it is no form, or has more than MOST_PARTS parts.
    """

    def __init__(self, content_type: str) -> None:
        _, options = parse_options_header(content_type)
        boundary = options.get(b"boundary")
        if not boundary:
            raise Refused("malformed", "the form's content type names no boundary")
        self._parts: list[Part] = []
        self._header, self._value = bytearray(), bytearray()
        self._ended = False
        try:
            self._parser = MultipartParser(
                boundary,
                {
                    "on_part_begin": self._begin,
                    "on_part_data": self._data,
                    "on_header_field": self._field,
                    "on_header_value": self._said,
                    "on_header_end": self._header_end,
                    "on_end": self._end,
                },
            )
        except FormParserError as error:
            raise _broken() from error

    def feed(self, chunk: bytes) -> None:
        """The next bytes."""
        try:
            self._parser.write(chunk)
        except FormParserError as error:
            raise _broken() from error

    def parts(self) -> list[Part]:
        """All parts, once the last byte has come."""
        if not self._ended:
            raise Refused("malformed", "the form ends too early")
        if any(not part.name for part in self._parts):
            raise Refused("malformed", "a part of the form has no name")
        return self._parts

    def _begin(self) -> None:
        if len(self._parts) >= MOST_PARTS:
            raise Refused("too_large", f"a form has at most {MOST_PARTS} parts")
        self._parts.append(Part())

    def _data(self, data: bytes, start: int, end: int) -> None:
        self._parts[-1].body += data[start:end]

    def _field(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]

    def _said(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _header_end(self) -> None:
        name, part = bytes(self._header).lower(), self._parts[-1]
        if name == b"content-disposition":
            _, options = parse_options_header(bytes(self._value))
            part.name = options.get(b"name", b"").decode("utf-8", "replace")
            part.is_file = b"filename" in options
        elif name == b"content-type":
            part.content_type = self._value.decode("latin-1").partition(";")[0].strip().lower()
        self._header.clear()
        self._value.clear()

    def _end(self) -> None:
        self._ended = True


def fields_of(parts: list[Part]) -> tuple[dict[str, Any], list[tuple[str, Part]]]:
    """(the keys of the request, the files that are inputs by name). A name that comes again makes a list.

    Raises:
        Malformed: a key that is given twice, or a text that is no UTF-8 or no JSON.
        TooLarge: more than a record holds, beside the files.
    """
    check_inline(part for part in parts if not part.is_file or part.name in _OWN or part.name == WHOLE)
    found: dict[str, Any] = {}
    texts: dict[str, Any] = {}
    files: list[tuple[str, Part]] = []
    for part in parts:
        if part.name == WHOLE:
            whole = _json(part)
            if found or type(whole) is not dict:
                raise Malformed("the part `request` is one JSON object, and stands once")
            found = dict(whole)
        elif part.is_file and part.name not in _OWN:
            files.append((part.name, part))
        else:
            add(texts, part.name, _text_value(part), own=_OWN)
    for name, value in texts.items():
        if name in found:
            raise Malformed("a key stands both in the part `request` and beside it; give it once")
        found[name] = value
    return found, files


def check_inline(parts: Iterable[Part]) -> None:
    """Refuse parts that no record holds, before any is decoded: a value takes many times the memory of its
    bytes, and while it is read nobody else is answered.

    Raises:
        TooLarge: they are more than a record holds.
    """
    size = sum(len(part.body) for part in parts)
    if size > MAX_RECORD_BYTES:
        most = f"at most {MAX_RECORD_BYTES} fit a record"
        raise TooLarge(f"what a form holds beside its stored files has {size} bytes; {most}")


def add(found: dict[str, Any], name: str, value: Any, own: frozenset[str] = frozenset()) -> None:
    """Put `value` under `name`, in a list with what is there.

    Raises:
        Malformed: a key in `own` that is there.
    """
    if name not in found:
        found[name] = value
    elif name in own:
        raise Malformed("a key of the request stands twice in the form")
    elif isinstance(found[name], list):
        found[name].append(value)
    else:
        found[name] = [found[name], value]


def file_value(part: Part) -> Any:
    """A file as workers would get it from a claim: by its content type text, a decoded value, or bytes.

    Raises:
        Malformed: it is not what its content type says.
    """
    kind = part.content_type or ""
    if kind == "application/json":
        return _json(part)
    return _text(part) if kind.startswith("text/") else bytes(part.body)


def _text_value(part: Part) -> Any:
    if part.name in _MAPS or part.content_type == "application/json":
        return _json(part)
    text = _text(part)
    number = _NUMBERS.get(part.name)
    if number is None:
        return text
    try:
        return number(text)
    except ValueError:
        return text  # whoever reads the request says what is wrong with it


def _text(part: Part) -> str:
    try:
        return part.body.decode()
    except UnicodeDecodeError:
        raise Malformed("a part of the form is no UTF-8; send it as a file") from None


def _json(part: Part) -> Any:
    raw = bytes(part.body)
    check_size(raw, True)
    try:
        return msgspec.json.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise Malformed("a part of the form is no JSON that can be read") from None


def _broken() -> Refused:
    return Refused("malformed", "the body is no form that can be read")
