"""Figures in running text: which amount is which item's, of which time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal, NamedTuple

from workers.library.finance.amounts import Amount, find_amounts, find_percents, narrow
from workers.library.finance.items import STATED, TERMS, Mention, find_items

CURRENT, PREVIOUS, QUARTER = "current", "previous", "previous_quarter"
"""Now, a year before, a quarter before."""
Kind = Literal["mention", "amount", "percent"]

_SENTENCE = re.compile(r"[。！？；;\n]|[.!?](?=\s|$)")
_AHEAD = re.compile(
    r"\b(?:expects?|expected|outlook|guidance|forecasts?|anticipates?|will be)\b|预计|预期|展望|指引",
    re.IGNORECASE,
)
_BEFORE = re.compile(
    r"上年|去年|前一年|同期|(?<!自)由|从|\bfrom\b|compared (?:with|to)|\b(?:versus|vs|against|than)\b",
    re.IGNORECASE,
)
_BEFORE_QUARTER = re.compile(r"上一?季度|上季|环比|(?:previous|prior|last|preceding) quarter", re.IGNORECASE)
_AFTER = re.compile(
    r"^[\s,，)）]*(?:a year (?:earlier|ago)|last year|in the (?:year before|prior year|prior-year|same period"
    r"|year-ago)|the (?:year before|prior year)"
    r"|in (?:the )?\w+ (?:quarter )?(?:of )?(?:last|the prior) year)",
    re.IGNORECASE,
)
_AFTER_QUARTER = re.compile(
    r"^[\s,，)）]*(?:in )?(?:the )?(?:previous|prior|last|preceding) quarter", re.IGNORECASE
)
_TO = re.compile(r"(?:(?<!compared )\bto|至|到|达|为)(?:盈利|亏损)?\s*$", re.IGNORECASE)
_GAIN_OR_LOSS = re.compile(r"(?P<gain>盈利|\bprofits?\b)|亏损|净损失|\bloss(?:es)?\b", re.IGNORECASE)
_OF_LOSSES = frozenset(("net_profit", "operating_profit", "eps"))
"""Items that are a profit at one time and a loss at another: "净利润1亿元，上年同期亏损2亿元"."""
_CHANGE = re.compile(
    r"(?:\b(?:by|increased|decreased|grew|rose|fell|declined|up|down|more|less)"
    r"|(?:increase|decrease|gain|rise|decline) of|(?:增加|减少|增长|下降|上升|多|少)了?)\s*$",
    re.IGNORECASE,
)
_PER_SHARE = re.compile(
    r"^\s*(?:per|a|/)\s?(?:(?:diluted|basic|common|ordinary)\s+){0,2}share\b", re.IGNORECASE
)
_UP = re.compile(r"\bup\b|increas|gr[eo]w|\brose\b|\bris|higher|jump|climb|improv|增|升|涨", re.IGNORECASE)
_DOWN = re.compile(r"\bdown\b|decreas|declin|\bfell\b|\bdrop|lower|减|降|跌|下滑", re.IGNORECASE)
_SEQUENTIAL = re.compile(
    r"环比|sequential|(?:previous|prior|last) quarter|quarter[ -]over[ -]quarter", re.IGNORECASE
)
_CLAUSE = re.compile(r"[%％,，、]| and ")
_REACH = 40


@dataclass(frozen=True, slots=True)
class Figure:
    """One item at one time, in whole units of `currency`; `where` says from what part of the input."""

    item: str
    period: str
    value: Decimal
    currency: str | None
    where: dict[str, Any]
    within: Decimal = Decimal(0)


class Stated(NamedTuple):
    """A share that the text itself states: of growth (`yoy`, `qoq`), or a ratio of STATED."""

    name: str
    kind: Literal["yoy", "qoq", "ratio"]
    value: Decimal
    within: Decimal
    where: dict[str, Any]


@dataclass(slots=True)
class Reading:
    """What was read; `others` are later mentions that differ from the first, which counts."""

    figures: dict[tuple[str, str], Figure] = field(default_factory=dict)
    others: list[Figure] = field(default_factory=list)
    stated: list[Stated] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)

    def take(self, figure: Figure) -> None:
        known = self.figures.setdefault((figure.item, figure.period), figure)
        # The same amount said in another currency, as a convenience, is no contradiction.
        apart = abs(known.value - figure.value) > known.within + figure.within
        if apart and known.currency == figure.currency:
            self.others.append(figure)


def read_text(text: str) -> Reading:
    """By rule: an amount is of the item named last before it in its sentence, or right behind it.

    An amount behind words like "from" or 上年同期, or before "a year earlier", is of the year before. What is
    foreseen ("expects", 预计) is no figure. The first mention counts.
    """
    text = narrow(text)
    found = Reading()
    marks: list[_Mark] = [_Mark(mention.start, "mention", mention) for mention in find_items(text)]
    marks += [_Mark(amount.start, "amount", amount) for amount in find_amounts(text)]
    marks += [_Mark(percent.start, "percent", percent) for percent in find_percents(text)]
    marks.sort(key=lambda mark: mark[:2])
    at = 0
    for begin, end in _sentences(text):
        mine = []
        while at < len(marks) and marks[at].start < end:
            mine.append(marks[at])
            at += 1
        if mine and not _AHEAD.search(text, begin, end):
            _Sentence(text, begin, end, found).read(mine)
    return found


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    begin = 0
    for match in _SENTENCE.finditer(text):
        yield begin, match.end()
        begin = match.end()
    yield begin, len(text)


class _Mark(NamedTuple):
    start: int
    kind: Kind
    what: Mention | Amount


@dataclass(slots=True)
class _Sentence:
    """What is known at a place of a sentence: the item spoken of, and whether of the year before."""

    text: str
    begin: int
    end: int
    found: Reading
    mention: Mention | None = None
    earlier: bool = False
    seen: set[str] = field(default_factory=set)
    last: int = 0
    told: int = 0

    def read(self, marks: Sequence[_Mark]) -> None:
        self.last = self.begin
        for place, (_start, kind, mark) in enumerate(marks):
            if isinstance(mark, Mention):
                self._turn(mark)
            elif kind == "amount":
                self._amount(mark, marks[place + 1].what if place + 1 < len(marks) else None)
            else:
                self._percent(mark)

    def _turn(self, mention: Mention) -> None:
        # "Net income of $2.9 billion" behind "compared with" repeats an item: still of the year before.
        if mention.item not in self.seen:
            self.earlier = False
        self.mention = mention

    def _amount(self, amount: Amount, following: Mention | Amount | None) -> None:
        begin = max(self.last, amount.start - 80)
        before = self.text[begin : amount.start]
        after = self.text[amount.end : min(self.end, amount.end + _REACH)]
        self.last = amount.end
        mention = self._whose(amount, after, following)
        if mention is None or mention.item is None or _CHANGE.search(before):
            return
        item = "gross_profit" if mention.item == "gross_margin" else mention.item
        if item not in TERMS:
            return
        period = self._when(before, after)
        if period == CURRENT:
            self.seen.add(item)
        value = self._signed(amount, mention, item, begin)
        where = {"start": amount.start, "end": amount.end, "text": self.text[amount.start : amount.end]}
        self.found.take(Figure(item, period, value, amount.currency, where, amount.within))

    def _signed(self, amount: Amount, mention: Mention, item: str, begin: int) -> Decimal:
        """The amount of a loss is negative, with a sign or without; what it is said to be last counts."""
        negative = mention.negative
        if item in _OF_LOSSES:
            for said in _GAIN_OR_LOSS.finditer(self.text, max(begin, mention.end), amount.start):
                negative = said["gain"] is None
        return -abs(amount.value) if negative else amount.value

    def _whose(self, amount: Amount, after: str, following: Mention | Amount | None) -> Mention | None:
        if _PER_SHARE.match(after):
            known = self.mention
            if known is not None and (known.item is None or amount.start - known.end > 200):
                return None
            return Mention("eps", amount.start, amount.end, known is not None and known.negative)
        if isinstance(following, Mention) and following.start < amount.end + 20:
            between = self.text[amount.end : following.start].strip().lower()
            if between in ("in", "of", "of total", "in total", "in quarterly", "in annual"):
                return following
        if self.mention is not None and self.mention.item == "eps" and amount.value > 100_000:
            return None
        return self.mention

    def _when(self, before: str, after: str) -> str:
        if _BEFORE_QUARTER.search(before) or _AFTER_QUARTER.match(after):
            return QUARTER
        if _BEFORE.search(before) or _AFTER.match(after):
            self.earlier = True
        elif _TO.search(before):
            self.earlier = False
        return PREVIOUS if self.earlier else CURRENT

    def _percent(self, percent: Amount) -> None:
        mention = self.mention
        if mention is None or mention.item is None or percent.start - mention.end > 120:
            return
        where = {"start": percent.start, "end": percent.end, "text": self.text[percent.start : percent.end]}
        before = self.text[max(mention.end, self.told, percent.start - _REACH) : percent.start]
        self.told = percent.end
        moves = _moves(before)
        if mention.item in STATED:
            after = self.text[percent.end : min(self.end, percent.end + _REACH)]
            if _is_level(before, after, moves):
                self.found.stated.append(Stated(mention.item, "ratio", percent.value, percent.within, where))
            return
        if not moves and percent.value >= 0 and self.text[percent.start] not in "+-−":
            return
        value = -percent.value if moves < 0 else percent.value
        near = before + _CLAUSE.split(self.text[percent.end : min(self.end, percent.end + _REACH)])[0]
        kind: Literal["yoy", "qoq"] = "qoq" if _SEQUENTIAL.search(near) else "yoy"
        self.found.stated.append(Stated(mention.item, kind, value, percent.within, where))


def _is_level(before: str, after: str, moves: int) -> bool:
    """Whether a percentage is what a ratio is now: neither what it was ("from 30%") nor how far it moved."""
    if moves:
        return _TO.search(before) is not None
    return not _BEFORE.search(before) and not _AFTER.match(after)


def _moves(before: str) -> int:
    """1 up, -1 down, by the word nearest to the end of `before`; 0 where there is none."""
    ups, downs = list(_UP.finditer(before)), list(_DOWN.finditer(before))
    up, down = (found[-1].start() if found else -1 for found in (ups, downs))
    return 0 if up == down else (1 if up > down else -1)
