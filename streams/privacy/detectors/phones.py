"""Telephone numbers: international, by phonenumbers, by grouping, length and the words around them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import phonenumbers

from streams.privacy.finding import Detector, Finding

NAME = "phones"
_CANDIDATE = re.compile(
    r"(?<![\w.,/-])(?:\+|00)?\(?\d(?:[ \u00a0.()/\-]{0,3}\d){5,16}"
    r"(?:\s?(?:x|ext\.?)\s?\d{1,6})?(?![\w/]|[.,-]\d)",
    re.ASCII,
)
_WORDS = re.compile(
    r"(?i)phone|call|\btel\b|tel\.|mobile|cell|\bfax|text me|sms|whatsapp|reach|contact|dial|ring|number"
    r"|desk|office"
    r"|telefon|handy|anruf|téléph|portable|móvil|teléf|llam|cellul|chiam|bellen|电话|手机|拨打|联系|微信|传真|answer"
    r"|номер|hotline|helpline|messages to"
)
_MONEY = re.compile(r"(?i)[$€£¥₹]\s?$|(?:usd|eur|gbp|rmb|cny|sum of|amount of)\s?$")
_UNIT = re.compile(
    r"(?i)\s?(?:[$€£¥₹%元]|usd|eur|gbp|dollars|euros|pounds|units|users|rows|items|people|bytes|[kmg]b|ms)\b"
)
_DATE_LIKE = re.compile(
    r"(?:19|20)\d\d[-./ ]\d{1,2}[-./ ]\d{1,2}(?:[ T]\d{1,2})?|\d{1,2}[-./ ]\d{1,2}[-./ ](?:19|20)\d\d"
)
_YEARS = re.compile(r"(?:19|20)\d\d\s?[-/]\s?(?:19|20)\d\d")
_REGIONS = ("US", "GB", "DE", "FR", "ES", "IT", "NL", "CN", "IN", "AU", "BR", "JP")


class Phones:
    """Numbers that a person could be reached at. In doubt a grouped number is one."""

    name = NAME

    def find(self, text: str, /) -> Iterator[Finding]:
        if sum(map(str.isdigit, text)) < 6:
            return
        for match in _CANDIDATE.finditer(text):
            if self._is_phone(match[0], text, match.start(), match.end()):
                yield Finding("phone", match[0], 0.9, NAME)

    def _is_phone(self, found: str, text: str, start: int, end: int) -> bool:
        digits = re.sub(r"\D", "", re.sub(r"[xe].*", "", found))
        if _DATE_LIKE.fullmatch(found) or _YEARS.fullmatch(found):
            return False
        if _MONEY.search(text, max(0, start - 12), start) or _UNIT.match(text, end):
            return False
        if found.startswith(("+", "00")) and len(digits) >= 8:
            return True
        told = _WORDS.search(text, max(0, start - 50), min(len(text), end + 20)) is not None
        groups = re.split(r"\D+", re.sub(r"\s?[xe].*", "", found).strip("() "))
        if len(groups) > 1 and 7 <= len(digits) <= 13:
            return told or not _is_other(found, groups)
        if told and 6 <= len(digits) <= 13:
            return True
        if len(digits) == 10 and digits[0] not in "01":
            return True
        return len(digits) in (10, 11) and any(_valid(found, region) for region in _REGIONS)


def _is_other(found: str, groups: list[str]) -> bool:
    """Versions, coordinates and ranges: points alone between short groups, or two groups of which one is
    short."""
    if "." in found and re.fullmatch(r"[\d.]+", found) and len(groups[0]) != 3 and max(map(len, groups)) != 2:
        return True
    return len(groups) == 2 and (min(map(len, groups)) < 3 or max(map(len, groups)) > 8)


def _valid(text: str, region: str) -> bool:
    try:
        return bool(phonenumbers.is_valid_number(phonenumbers.parse(text, region)))
    except phonenumbers.NumberParseException:
        return False


def detector() -> Detector:
    """The detector `phones`."""
    return Phones()
