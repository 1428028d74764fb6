"""How much memory a record would take once decoded, found out before it is decoded.

One byte of msgpack can become an empty list of 64 bytes, so a record of 1 MiB could fill 70 MB. The prices
below are upper bounds of what CPython 3.11 takes for a value and its slot. Short records cannot exceed the
limit and are not looked at.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from schemas.errors import Malformed, TooLarge

MAX_RECORD_BYTES = 2**20
"""The longest record that is decoded or written; a topic takes 2 MiB, so that a longer one can be
answered.
"""

MAX_MEMORY = 7 * 2**20
"""Bytes that a decoded record may take."""

FREE_MSGPACK = 64 * 2**10
FREE_JSON = 192 * 2**10
"""Records up to these sizes stay below MAX_MEMORY whatever they hold (76 bytes a byte of msgpack, 28 of
JSON).
"""

_SMALL, _NUMBER, _STRING, _LIST, _DICT, _ENTRY = 8, 40, 72, 72, 200, 60
_TEXT = 5
_JSON_LIST, _JSON_COMMA = 88, 42

_STRING_PATTERN = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)'
# An unterminated string matches up to the end: were it to fail instead, each later quote would be tried anew.
_JSON_STRING = re.compile(_STRING_PATTERN, re.DOTALL)
_JSON_CHUNK = re.compile(rb'(?:[^"]++|' + _STRING_PATTERN + rb"){1,1000}+", re.DOTALL)
# Replacing the strings of a whole record at once takes 60 MB where there are many.


class Token(NamedTuple):
    """One msgpack token: where the next one starts, how many values it holds, its text or bytes."""

    end: int
    children: int
    start: int


class _Run(NamedTuple):
    pattern: re.Pattern[bytes]
    width: int
    price: int


def _runs() -> list[_Run | None]:
    table: list[_Run | None] = [None] * 256
    shapes: list[tuple[bytes, int, int]] = [
        (rb"[\x00-\x7f\xa0\xc0-\xc3\xe0-\xff]", 1, _SMALL),
        (rb"[\xcc\xd0]", 2, _NUMBER),
        (rb"[\xcd\xd1]", 3, _NUMBER),
        (rb"[\xca\xce\xd2]", 5, _NUMBER),
        (rb"[\xcb\xcf\xd3]", 9, _NUMBER),
    ]
    for leads, width, price in shapes:
        pattern = re.compile(rb"(?:" + leads + rb"[\x00-\xff]{%d})++" % (width - 1), re.DOTALL)
        for lead in range(256):
            if re.fullmatch(leads, bytes([lead]), re.DOTALL):
                table[lead] = _Run(pattern, width, price)
    return table


_RUNS = _runs()
_NEGATIVES = bytes(range(0xE0, 0x100))
_LENGTHS = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xC7: 1, 0xC8: 2, 0xC9: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4}
_LENGTHS |= {0xDC: 2, 0xDD: 4, 0xDE: 2, 0xDF: 4}


def token(raw: bytes, at: int) -> Token:
    """The msgpack token at `at` (its end may lie beyond `raw` where that is truncated)."""
    lead = raw[at]
    run = _RUNS[lead]
    if run is not None:
        return Token(at + run.width, 0, at + 1)
    if lead < 0x90:
        return Token(at + 1, 2 * (lead & 15), at + 1)
    if lead < 0xA0:
        return Token(at + 1, lead & 15, at + 1)
    if lead < 0xC0:
        return Token(at + 1 + (lead & 31), 0, at + 1)
    if 0xD4 <= lead <= 0xD8:
        return Token(at + 2 + (1 << (lead - 0xD4)), 0, at + 2)
    start = at + 1 + _LENGTHS[lead]
    size = int.from_bytes(raw[at + 1 : start], "big")
    if lead >= 0xDC:
        return Token(start, size if lead < 0xDE else 2 * size, start)
    return Token(start + size + (1 if 0xC7 <= lead <= 0xC9 else 0), 0, start)


def msgpack_memory(raw: bytes, limit: int = MAX_MEMORY) -> int:
    """Bytes that `raw` takes once decoded, an upper bound; counting stops above `limit`."""
    total = at = 0
    end = len(raw)
    while at < end and total <= limit:
        lead = raw[at]
        if 0xA0 < lead < 0xC0:
            total += _STRING + _TEXT * (lead & 31)
            at += 1 + (lead & 31)
            continue
        run = _RUNS[lead]
        if run is None:
            found = token(raw, at)
            total += _price(lead, found, end)
            at = found.end
            continue
        matched = run.pattern.match(raw, at)
        if matched is None:
            break
        count = (matched.end() - at) // run.width
        total += count * run.price
        if run.width == 1:
            # Of the integers in one byte only those below -5 take memory of their own.
            total += (_NUMBER - _SMALL) * (count - len(matched.group().translate(None, _NEGATIVES)))
        at = matched.end()
    return total


def _price(lead: int, found: Token, end: int) -> int:
    """What a container, a text or bytes take; `end` is where the record ends."""
    if lead < 0x90 or lead >= 0xDE:
        return _DICT + _ENTRY * min(found.children // 2, end)
    if lead < 0xA0 or lead >= 0xDC:
        return _LIST
    size = min(found.end, end) - found.start
    return _STRING + (size if 0xC4 <= lead <= 0xC6 else _TEXT * size)


def json_memory(raw: bytes, limit: int = MAX_MEMORY) -> int:
    """Bytes that `raw` takes once decoded, an upper bound; counting stops above `limit`."""
    total = 0
    text = 1 if raw.isascii() and b"\\u" not in raw else _TEXT
    for chunk in _JSON_CHUNK.finditer(raw):
        bare = _JSON_STRING.sub(b'""', chunk.group())
        total += (
            _JSON_LIST * bare.count(b"[")
            + _DICT * bare.count(b"{")
            + _ENTRY * bare.count(b":")
            + _JSON_COMMA * bare.count(b",")
            + _STRING * (bare.count(b'"') // 2)
            + text * max(0, chunk.end() - chunk.start() - len(bare))
        )
        if total > limit:
            break
    return total


def check_size(raw: bytes, is_json: bool, limit: int = MAX_MEMORY) -> None:
    """Refuses a record that is too long, or would take more than `limit` bytes once decoded.

    Raises:
        TooLarge: more than MAX_RECORD_BYTES.
        Malformed: too much memory.
    """
    if len(raw) > MAX_RECORD_BYTES:
        raise TooLarge(f"record has {len(raw)} bytes; at most {MAX_RECORD_BYTES} are read, send less at once")
    if len(raw) <= (FREE_JSON if is_json else FREE_MSGPACK):
        return
    memory = json_memory(raw, limit) if is_json else msgpack_memory(raw, limit)
    if memory > limit:
        raise Malformed(
            f"record holds too many values: they would take more than {limit >> 20} MB of memory;"
            " send numbers as bytes (little-endian float32), or less at once"
        )
