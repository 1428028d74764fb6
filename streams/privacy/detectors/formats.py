"""What its form gives away: e-mail, cards, IBANs, addresses of machines, links, dates in full."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

from stdnum import luhn

from streams.privacy.finding import Detector, Finding

NAME = "formats"

_EMAIL = re.compile(r"[\w.+%'-]{1,64}@(?:[\w-]{1,63}\.){1,8}[^\W\d_]{2,24}")
_SPELT_EMAIL = re.compile(
    r"(?i)\b[\w.+-]{2,64}\s?[\[({]\s?(?:at|@|ät)\s?[\])}]\s?[\w-]{1,63}"
    r"(?:\s?(?:\.|[\[({]\s?(?:dot|punkt|\.)\s?[\])}])\s?[\w-]{2,63}){1,4}"
    r"|\b[\w.+-]{2,64} (?:at|@) [\w-]{1,63} (?:dot|\.) (?:com|net|org|de|edu|gov|co|io|uk|fr|cn)\b"
)
_URL = re.compile(r"(?i)\b(?:https?|ftps?|sftp|ssh|wss?|file|mailto|jdbc):/{0,3}[^\s<>\"'，。）]{3,}")
_DOMAIN = re.compile(
    r"(?i)(?<![\w@./-])(?:www\.[\w-]{1,63}|[a-z0-9][\w-]{1,62})(?:\.[a-z0-9][\w-]{0,62}){0,4}"
    r"\.(?:com|net|org|info|biz|edu|gov|mil|io|ai|dev|app|shop|site|online|xyz|eu|de|uk|fr|es|it|nl|be|ch"
    r"|at|pl"
    r"|cz|sk|hu|ro|se|no|dk|fi|ie|pt|gr|ru|ua|tr|cn|jp|kr|tw|hk|sg|in|au|nz|za|br|mx|ar|cl|co|ca|us|is|ee"
    r"|lv|lt"
    r"|si|hr|rs|bg|il|ae|th|vn|my|ph|id)(?![\w@-])(?!\.\w)"
)
_IPV4 = re.compile(r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.]*\d)")
_IPV6 = re.compile(r"(?ai)(?<![\w:])(?:[0-9a-f]{0,4}:){2,7}[0-9a-f]{0,4}(?:%\w+)?(?![\w:])")
_MAC = re.compile(
    r"(?ai)(?<![\w:-])(?:[0-9a-f]{2}[:-]){5}[0-9a-f]{2}(?![\w:-])|\b(?:[0-9a-f]{4}\.){2}[0-9a-f]{4}\b"
)
_DIGITS = re.compile(r"(?<![\d.,])\d(?:[ \-.]?\d){10,18}(?![\d])")
_ACCOUNT_WORDS = re.compile(
    r"(?i)card|cc\b|credit|debit|visa|mastercard|amex|account|acct|konto|kunden|compte|cuenta|conto|rekening"
    r"|number|\bno\b|卡|账|帐|户|#|sort code|routing"
)
_IBAN = re.compile(r"(?ai)\b[a-z]{2}\d{2}(?:[ -]?[a-z0-9]{4}){2,7}(?:[ -]?[a-z0-9]{1,4})?\b")
_LANDS = (
    "ADAEALATAZBABEBGBHBRBYCHCRCYCZDEDKDOEEEGESFIFOFRGBGEGIGLGRGTHRHUIEILIQISITJOKWKZLBLCLILT"
    "LULVMCMDMEMKMRMTMUNLNOPKPLPSPTQARORSSASCSESISKSMSTSVTLTNTRUAVAVGXK"
)
_IBAN_LANDS = frozenset(_LANDS[at : at + 2] for at in range(0, len(_LANDS), 2))
_SWIFT = re.compile(r"(?ai)\b(?:swift|bic)\b[^\n]{0,20}?\b([A-Z]{6}[A-Z0-9]{2}(?:[A-Z0-9]{3})?)\b")
_SORT_CODE = re.compile(r"(?i)\b(?:sort ?code|routing|aba)\b[^\n\d]{0,20}(\d{2}-?\d{2}-?\d{2}\b|\d{9}\b)")
_COIN = re.compile(r"(?a)\b(?:0x[0-9a-fA-F]{40}|bc1[a-z0-9]{25,60}|[13][a-km-zA-HJ-NP-Z1-9]{26,34})\b")

_MONTH = (
    r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|januar|februar|märz|mai|juni|juli|okt|dez|janv"
    r"|févr|mars"
    r"|avr|juin|juil|août|ene|abr|ago|dic|gen|mag|giu|lug|set|ott)[a-zéûä]{0,8}\.?"
)
_DATE = re.compile(
    r"(?i)(?<![\d./-])(?:\d{1,2}([./-])\d{1,2}\1(?:19|20)?\d\d|(?:19"
    r"|20)\d\d([./-])\d{1,2}\2\d{1,2})(?![\d/-]|\.\d)"
    rf"|\b\d{{1,2}}(?:st|nd|rd|th|\.|er|º)?(?: of| de| di)? {_MONTH}(?: de| di)?,? (?:19|20)?\d\d\b"
    rf"|\b{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?,? (?:19|20)\d\d\b"
    r"|(?:19|20)\d\d\s?年\s?\d{1,2}\s?月\s?\d{1,2}\s?[日号]"
)
_YEAR = re.compile(
    r"(?ai)\b(?:in|of|since|during|until|till|before|after|around|year|seit|depuis|desde|dal) ((?:19"
    r"|20)\d\d)\b(?![.,-]?\d)"
)
_BIRTH = re.compile(
    r"(?i)\bborn|birth|\bdob\b|\bd\.o\.b|geboren|geburt|\bgeb\.|né[e]? le|naissance|naci[oód]|nacimiento"
    r"|nat[oa] il"
    r"|nascita|geboortedatum|nasc|出生|生日|生于"
)


class Formats:
    """Regular expressions, each asked for only where a cheaper test says that it may match."""

    name = NAME

    def find(self, text: str, /) -> Iterator[Finding]:
        lower = text.lower()
        if "@" in text or " at " in lower or "(at)" in lower or "[at]" in lower:
            yield from _each("email", _EMAIL, text)
            yield from _each("email", _SPELT_EMAIL, text)
        if "." in text:
            yield from _each("url", _URL, text)
            yield from _each("url", _DOMAIN, text)
        elif "://" in text:
            yield from _each("url", _URL, text)
        if any(map(str.isdigit, text)):
            yield from _numbers(text)


def _numbers(text: str) -> Iterator[Finding]:
    if "." in text:
        yield from (_found("ip", one) for one in _IPV4.findall(text) if _is_ip(one))
    if ":" in text or "-" in text or "." in text:
        yield from _each("mac", _MAC, text)
    if text.count(":") > 1:
        yield from (_found("ip", one[0]) for one in _IPV6.finditer(text) if _is_ip(one[0].split("%")[0]))
    yield from _accounts(text)
    for match in _DATE.finditer(text):
        about = _BIRTH.search(text, max(0, match.start() - 40), min(len(text), match.end() + 12))
        yield _found("birth_date" if about else "date", match[0])
    for match in _YEAR.finditer(text):
        about = _BIRTH.search(text, max(0, match.start() - 20), match.start())
        yield Finding("birth_date" if about else "date", match[1], 0.4, NAME)


def _accounts(text: str) -> Iterator[Finding]:
    for match in _DIGITS.finditer(text):
        digits = re.sub(r"\D", "", match[0])
        if is_card(digits):
            yield _found("credit_card", match[0])
        elif len(digits) > 11 and _ACCOUNT_WORDS.search(text, max(0, match.start() - 40), match.start()):
            yield _found("bank_account", match[0])
    for match in _IBAN.finditer(text):
        plain = re.sub(r"[ -]", "", match[0])
        if plain[:2].upper() in _IBAN_LANDS and sum(map(str.isdigit, plain)) >= 8:
            yield _found("iban", match[0])
    for pattern in (_SWIFT, _SORT_CODE):
        yield from (_found("bank_account", match[1]) for match in pattern.finditer(text))
    for match in _COIN.finditer(text):
        if any(map(str.isdigit, match[0])) and not match[0].isdigit():
            yield _found("bank_account", match[0])


def is_card(digits: str) -> bool:
    """Whether `digits` can be a card's number: 12 to 19 of them, a known first digit, Luhn's checksum."""
    if not 12 <= len(digits) <= 19:
        return False
    return (digits[0] in "23456" or digits.startswith("1800")) and bool(luhn.is_valid(digits))


def _is_ip(text: str) -> bool:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    return not (address.is_loopback or address.is_unspecified)


def _each(kind: str, pattern: re.Pattern[str], text: str) -> Iterator[Finding]:
    return (Finding(kind, match[0], 1.0, NAME) for match in pattern.finditer(text))


def _found(kind: str, text: str) -> Finding:
    return Finding(kind, text, 1.0, NAME)


def detector() -> Detector:
    """The detector `formats`."""
    return Formats()
