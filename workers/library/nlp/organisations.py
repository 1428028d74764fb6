"""Companies by the words that end their names, and percentages: rules beside the tagger."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_NAME = r"(?:[A-Z][\w&'’.-]{0,30}|&|and|of|de)"
_ENGLISH = re.compile(
    rf"\b(?!(?:The|Our|This|Its|An?|Each|No|Any|In|At|By) )[A-Z][\w&'’.-]{{0,30}} (?:{_NAME} ){{0,3}}?"
    r"(?:Inc|Ltd|Limited|Corp|Corporation|plc|PLC|Group|Holdings|GmbH|AG|LLC|LLP|S\.A|N\.V|SE|Co)\b\.?"
)
_CHINESE = re.compile(
    r"[\u4e00-\u9fff（）()]{2,16}?(?:股份有限公司|有限责任公司|集团有限公司|有限公司|集团(?!队|军))"
)
# The rule for Chinese names has no word boundary to start at: these may stand before a name, never in it.
_LEAD = re.compile(
    r"^.*(?:显示|表示|宣布|公布|发布|其中|以及|关于|根据|收购|任职于|就职于|毕业于|加入|离开|创立|成立|起诉|入股|投资|"
    r"通过|作为|来自|[，。、：；（(年月日的和与及在由向对从被将为据经是任])"
)
_PERCENTAGE = re.compile(
    r"(?<![\d.])[-+−]?\d{1,15}(?:\.\d{1,15})?\s?(?P<sign>%|％|percent\b|per cent\b|个百分点"
    r"|percentage points?\b)"
    r"|百分之(?P<han>[零一二三四五六七八九十百]{1,6})(?:点(?P<part>[零一二三四五六七八九]{1,6}))?",
    re.IGNORECASE,
)
_HAN_DIGITS: Final = {c: k for k, c in enumerate("零一二三四五六七八九")}


class Found(NamedTuple):
    """`value` of a percentage in hundredths, as it is written: 12.5 for 12.5%."""

    start: int
    end: int
    value: float | None = None


def find_companies(text: str) -> list[Found]:
    """By suffix: `Northwind Instruments Inc.`, `星河智造股份有限公司`."""
    found = [Found(*match.span()) for match in _ENGLISH.finditer(text)]
    for match in _CHINESE.finditer(text):
        lead = _LEAD.match(match[0])
        start = match.start() + (lead.end() if lead else 0)
        if match.end() - start >= 4:
            found.append(Found(start, match.end()))
    return sorted(found)


def find_percentages(text: str) -> list[Found]:
    """With their values."""
    return [Found(*match.span(), _percent(match)) for match in _PERCENTAGE.finditer(text)]


def _percent(match: re.Match[str]) -> float | None:
    if match["sign"]:
        return float(re.sub(r"[^\d.+-]", "", match[0].replace("−", "-")[: -len(match["sign"])]))
    from workers.library.nlp.money import chinese_number

    whole = chinese_number(match["han"])
    part = "".join(str(_HAN_DIGITS[c]) for c in match["part"] or "")
    return None if whole is None else float(f"{whole:.0f}.{part or '0'}")
