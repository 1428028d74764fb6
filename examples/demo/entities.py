"""Tokens and named entities of mixed English and Chinese text, by rule."""

import re
from dataclasses import dataclass

from .figures import TERMS
from .money import find_money

_LEXICON = sorted(
    {term for terms in TERMS.values() for term in terms if not term.isascii()}
    | {
        "公司",
        "集团",
        "季度",
        "上年",
        "同期",
        "同比",
        "增长",
        "下降",
        "上半年",
        "下半年",
        "现金流",
        "毛利率",
        "人民币",
    },
    key=len,
    reverse=True,
)
_TOKENS = re.compile(
    r"(?P<number>\d+(?:,\d{3})*(?:\.\d+)?%?)|(?P<latin>[A-Za-z]+(?:['\u2019-][A-Za-z]+)*)"
    rf"|(?P<han>{'|'.join(_LEXICON)}|[\u4e00-\u9fff])|(?P<mark>[^\s])"
)

_MONTH = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?"
    r"|Sept?(?:ember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)"
)
_YEAR = r"(?:19|20)\d\d"
_RULES = {
    "date": re.compile(
        rf"{_YEAR}\s?年\s?\d{{1,2}}\s?月(?:\s?\d{{1,2}}\s?日)?|\b{_YEAR}-\d{{2}}-\d{{2}}\b"
        rf"|\b\d{{1,2}} {_MONTH} {_YEAR}\b|\b{_MONTH} \d{{1,2}}, {_YEAR}\b"
    ),
    "period": re.compile(
        rf"{_YEAR}\s?年(?:第[一二三四]季度|前三季度|上半年|下半年|度)|{_YEAR}财年|第[一二三四]季度"
        rf"|(?<!\d){_YEAR}年(?!\s?\d)"
        rf"|\b(?:FY ?{_YEAR}|Q[1-4] {_YEAR}|{_YEAR} ?Q[1-4]|H[12] {_YEAR})\b"
        rf"|\b(?:first|second|third|fourth) quarter(?: of {_YEAR})?\b|\b(?:first|second) half of {_YEAR}\b",
        re.IGNORECASE,
    ),
    "percentage": re.compile(
        r"(?<![\d.])[-+]?\d{1,15}(?:\.\d{1,15})?\s?(?:%|％|percent\b|per cent\b|个百分点)"
        r"|百分之[零一二三四五六七八九十百点]+"
    ),
    "company": re.compile(
        r"\b(?:[A-Z][\w&'-]{0,30} ){1,4}"
        r"(?:Inc|Ltd|Limited|Corp|Corporation|plc|PLC|Group|Holdings|GmbH|AG|LLC)\b\.?"
        r"|[\u4e00-\u9fff]{2,16}?(?:股份有限公司|有限责任公司|有限公司|集团)"
    ),
}
# The rule for Chinese names has no word boundary to start at: these may stand before a name, never in it.
_LEAD = re.compile(r"^.*(?:显示|表示|宣布|公布|发布|其中|以及|关于|根据|[，。年月日的和与在由向对])")
_RANK = ("money", "date", "period", "percentage", "company")


@dataclass(frozen=True)
class Entity:
    """`text` is the part [start:end] of the input; `value` and `currency` are set for money alone."""

    kind: str
    text: str
    start: int
    end: int
    value: float | None = None
    currency: str | None = None


def tokenise(text: str) -> list[tuple[str, str, int]]:
    """(token, kind, start) with kind `latin`, `number`, `han` or `mark`.

    Chinese by longest known term, else by character.
    """
    return [(match[0], match.lastgroup or "mark", match.start()) for match in _TOKENS.finditer(text)]


def _ruled(kind: str, text: str) -> list[Entity]:
    found = []
    for match in _RULES[kind].finditer(text):
        start = match.start()
        if kind == "company" and (lead := _LEAD.match(match[0])) and not match[0].isascii():
            start += lead.end()
        found.append(Entity(kind, text[start : match.end()], start, match.end()))
    return found


def find_entities(text: str) -> list[Entity]:
    """In the order of the text, without overlap; on overlap the kind that is earlier in `_RANK` stays."""
    amounts = find_money(text)
    found = [Entity("money", text[m.start : m.end], m.start, m.end, m.value, m.currency) for m in amounts]
    for kind in _RANK[1:]:
        found += _ruled(kind, text)
    taken = bytearray(len(text))
    kept = []
    for entity in found:
        if not any(taken[entity.start : entity.end]):
            taken[entity.start : entity.end] = b"\1" * (entity.end - entity.start)
            kept.append(entity)
    return sorted(kept, key=lambda entity: entity.start)
