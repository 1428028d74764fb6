"""Every text in a payload: values, keys, numbers, bytes that hold text, and what encodings hide."""

from __future__ import annotations

import base64
import binascii
import html
import re
import unicodedata
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import unquote_plus

from schemas.values import MAX_DEPTH
from streams.privacy.masks import PLACEHOLDER

MAX_CHARS = 50_000
"""Characters that are examined of one payload; one with more stays local, whole."""

_PLAIN_KEYS = frozenset(
    (
        *("body", "content", "context", "data", "document", "file", "image", "images", "input", "inputs"),
        *("instruction", "items", "message", "messages", "params", "prompt", "query", "question", "role"),
        *("sentence", "text", "texts", "user_input", "value", "values"),
    )
)
_TELLING_KEY = re.compile(
    r"(?i)name|mail|phone|mobile|cell|tel|fax|address|street|city|town|zip|post|birth|dob|age\b|ssn|passport"
    r"|licen|account|acct|card|iban|tax|social|insur|national|secret|token|passw|pwd|key|user|login|person|patient"
    r"|customer|client|contact|employee|ip\b|mac\b|plate|姓名|电话|手机|地址|身份证|邮箱|生日|年龄|护照|卡号"
)
_WORDS = re.compile(r"[_\-.\s/]+|(?<=[a-z])(?=[A-Z])")
_BASE64 = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{16,}={0,2}(?![A-Za-z0-9+/_=-])")
_SPACED = re.compile(r"(?<!\S)\S(?: \S){7,}(?!\S)")
_PRINTED = re.compile(rb"[\x20-\x7e\t]{16,}")
_WHOLE_BASE64 = re.compile(r"(?:data:[\w.+/;=-]{0,100};base64,)?([A-Za-z0-9+/_\r\n-]{12,}+={0,2})\s*")
_UNSEEN = re.compile(
    "[\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffc"
    "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)
"""Formats, fillers, variation selectors and tags of Unicode 15: nobody sees them between two letters."""
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]+")
_ENCODED = 2
_NO_LETTERS = bytes(
    byte
    for byte in range(256)
    if not (char := bytes([byte]).decode("cp1252", "replace")).isalpha() and char not in " \r\n\t,.;:@-'"
)
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_LEAST = 1_000_000
"""Numbers below stand for themselves, unless their key tells of a person."""

_MAGIC = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a", b"II*\x00", b"MM\x00*", b"BM")


class Unexaminable(Exception):
    """A payload that cannot be examined whole; `reason` goes into the verdict."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


_LINK_KEY = re.compile(r"(?i)(?:ur[li]|href|link|src|source|image|img|photo|picture|video|audio|file)s?$")
_LINK = re.compile(r"https?://[^\s/@?#]+([^\s]*)")

Read = Callable[[bytes], str | None]

UNREAD_IMAGE = "\ue0001 image"
"""Stands for an image that no reader could read; the detector `images` knows it."""


class Texts:
    """Walks one payload. `read` reads the text in an image.

    Raises:
        Unexaminable: more than `most` characters (`too_long`), deeper than 32 levels (`too_deep`).
    """

    def __init__(self, read: Read | None = None, most: int = MAX_CHARS) -> None:
        self._left = most
        self._read = read

    def of(self, value: Any, key: str = "", depth: int = 0) -> Iterator[str]:
        """The texts in `value`; `key` is the one it stands under and gives a short text its context."""
        kind = type(value)
        if value is None or kind is bool:
            return
        if kind is str:
            yield from self._text(value, key)
        elif kind is dict:
            self._check(depth)
            for name, item in value.items():
                yield from self._text(name if type(name) is str else str(name), "")
                yield from self.of(item, str(name), depth + 1)
        elif kind is list or kind is tuple:
            self._check(depth)
            yield from self._list(value, key, depth)
        elif kind is int or kind is float:
            yield from self._number(value, key)
        elif kind is bytes or kind is bytearray or kind is memoryview:
            yield from self._bytes(bytes(value), key)
        else:
            raise Unexaminable("unknown_type")

    def _check(self, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise Unexaminable("too_deep")

    def _list(self, value: Any, key: str, depth: int) -> Iterator[str]:
        if len(value) >= 8 and set(map(type, value)) <= {int, float}:
            # A tensor. Only what is as large as an account's number is looked at, and digits one by one.
            if set(value) <= set(range(10)) and len(value) <= 34:
                yield from self._text("".join(str(int(digit)) for digit in value), key)
            elif max(value) >= _LEAST or min(value) <= -_LEAST:
                for item in value:
                    yield from self._number(item, key)
            return
        for item in value:
            yield from self.of(item, key, depth + 1)

    def _number(self, value: float, key: str) -> Iterator[str]:
        if type(value) is float:
            if not value.is_integer() or abs(value) > 1e19:
                return
            value = int(value)
        if abs(value) >= _LEAST or (key and _TELLING_KEY.search(key)):
            yield from self._text(str(value), key)

    def _text(self, text: str, key: str, encoded: int = 0) -> Iterator[str]:
        if len(text) > 12 and encoded < _ENCODED and (held := _WHOLE_BASE64.fullmatch(text)):
            raw = _unbase64("".join(held[1].split()), noise=True)
            if raw is not None and (is_image(raw) or (len(text) > 200 and _is_noise(text))):
                yield from self._bytes(raw, "", encoded + 1)
                return
        if key and "://" in text and _LINK_KEY.search(key) and (link := _LINK.fullmatch(text)):
            # The place of an image is what its step is asked for, and no finding; what it carries may be one.
            text, key = link[1] if re.search(r"[@=]|\d{6}", link[1]) else "", ""
        self._left -= len(text) + 8
        if self._left < 0:
            raise Unexaminable("too_long")
        if not text or text.isspace():
            return
        plain = PLACEHOLDER.sub(" it ", text) if "[" in text else text
        if not plain.isascii():
            plain = unicodedata.normalize("NFKC", _UNSEEN.sub("", plain))
        if _CONTROL.search(plain):
            # UTF-16 without its mark reads as UTF-8 with a NUL behind each letter; elsewhere they part words.
            yield _CONTROL.sub("", plain)
            plain = _CONTROL.sub(" ", plain)
        if key and key.lower() not in _PLAIN_KEYS and len(plain) < 200:
            yield f"{' '.join(_WORDS.split(key))}: {plain}"
        else:
            yield plain
        if encoded < _ENCODED and len(plain) > 5:
            yield from self._decoded(plain, encoded + 1)

    def _decoded(self, text: str, encoded: int) -> Iterator[str]:
        """What URL encoding, HTML entities, base64 and letters spaced out hide in a text."""
        for match in _SPACED.finditer(text):
            yield from self._text(match[0].replace(" ", ""), "", _ENCODED)
        if "%" in text:
            other = unquote_plus(text)
            if other != text:
                yield from self._text(other, "", encoded)
        if "&" in text and ";" in text:
            other = html.unescape(text)
            if other != text:
                yield from self._text(other, "", encoded)
        for match in _BASE64.finditer(text):
            raw = _unbase64(match[0])
            if raw is not None:
                yield from self._bytes(raw, "", encoded)

    def _bytes(self, raw: bytes, key: str, encoded: int = 0) -> Iterator[str]:
        image = is_image(raw)
        if image:
            text = self._read(raw) if self._read else None
            yield from self._text(text, "", encoded) if text is not None else (UNREAD_IMAGE,)
        text = None if image else decoded(raw)
        if text is not None:
            yield from self._text(text, key, encoded)
            if "\0" not in text and raw[:2] not in _UTF16:
                return
        for match in _PRINTED.finditer(raw):
            # What is stored beside pixels or numbers: names of authors, comments. Chance makes no such runs.
            text = match[0].decode("ascii")
            if sum(char.isalnum() or char == " " for char in text) > 0.85 * len(text):
                yield from self._text(text, "", _ENCODED)


def _is_noise(text: str) -> bool:
    """Whether a long text in base64's letters is base64. Words run together have few digits or few capitals;
    what they say must not pass as bytes.
    """
    start = text[-4000:]
    few = len(start) // 16
    return min(sum(map(test, start)) for test in (str.isdigit, str.isupper, str.islower)) > few


def is_image(raw: bytes) -> bool:
    """Whether `raw` begins as an image does (PNG, JPEG, GIF, TIFF, BMP, WebP)."""
    return (raw.startswith(_MAGIC) and len(raw) > 8) or (raw[:4] == b"RIFF" and raw[8:12] == b"WEBP")


def decoded(raw: bytes) -> str | None:
    """`raw` as text: UTF-8, UTF-16 with its mark or of Western letters, or Windows-1252 where nearly all of
    it is letters."""
    head = raw[:4096]
    if (zeros := head.count(0)) > len(head) // 3 and raw[:2] not in _UTF16:
        wide = "utf-32" if zeros > len(head) // 1.6 else "utf-16"
        ends = head[1::2].count(0) if wide == "utf-16" else head[3::4].count(0)
        return _in(f"{wide}-{'le' if ends >= zeros // 3 else 'be'}", raw)
    try:
        if raw[:2] in _UTF16 and len(raw) % 2 == 0:
            return raw.decode("utf-16")
        text = raw.decode()
    except UnicodeDecodeError:
        # Counted in bytes: characters took 0.2 s of 3 MB of pixels, and this takes a tenth of it.
        letters = len(raw.translate(None, _NO_LETTERS))
        return raw.decode("cp1252", "replace") if letters >= 0.9 * len(raw) and len(raw) > 3 else None
    return text if _is_text(text) else None


def _in(codec: str, raw: bytes) -> str | None:
    text = raw.decode(codec, "replace")
    return text if _is_text(text) else None


def _is_text(text: str) -> bool:
    control = sum(char < " " and char not in "\r\n\t" for char in text[:4096])
    return control <= len(text[:4096]) // 10


def _unbase64(text: str, noise: bool = False) -> bytes | None:
    """The bytes of a base64 text, where they are text or an image, or `noise` is welcome; an ordinary word
    decodes to noise."""
    body = text.rstrip("=").replace("-", "+").replace("_", "/")
    if len(body) % 4 == 1:
        return None
    try:
        raw = base64.b64decode(body + "=" * (-len(body) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None
    if noise or is_image(raw):
        return raw
    try:
        plain = raw.decode()
    except UnicodeDecodeError:
        return None
    return raw if plain.isprintable() or plain.replace("\n", "").replace("\r", "").isprintable() else None
