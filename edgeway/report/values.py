"""Any output as blocks: maps as facts and sections, lists of maps as tables, labels as bars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from edgeway.report.blocks import Bars, Block, Facts, Items, Note, Picture, Section, Table, Text
from edgeway.report.spec import chart_of
from edgeway.report.words import Language, cut, of_claim, percent, shown
from schemas.claims import claim_of
from streams.merge.labels import LABEL, is_label_map, rows_key

MOST_ROWS, MOST_COLUMNS, MOST_ITEMS, MOST_DEPTH, MOST_SECTIONS = 200, 10, 100, 5, 60
MOST_PICTURE = 2 * 2**20
_NUMBERS = 24
_MAGIC = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"))


class Values:
    """Makes blocks of values, with our own words in `language`."""

    def __init__(self, language: Language) -> None:
        self._language = language

    def blocks(self, value: Any, depth: int = 0) -> list[Block]:
        """The blocks of one value; at least one."""
        claim = claim_of(value)
        if claim is not None:
            return [Text(of_claim(claim, self._language))]
        if isinstance(value, bytes) and (picture := _picture(value)) is not None:
            return [picture]
        chart = chart_of(value) if isinstance(value, dict) else None
        if chart is not None:
            return [chart]
        if not value or not isinstance(value, dict | list | tuple):
            return [Text(cut(value)) if isinstance(value, str) and value else Text(shown(value))]
        if depth >= MOST_DEPTH:
            return [Text(shown(value, self._language, 2000))]
        if isinstance(value, dict):
            return self._of_map(value, depth)
        return self._of_list(value, depth)

    def _of_map(self, given: dict[str, Any], depth: int) -> list[Block]:
        if len(given) > 1 and is_label_map(given, listed=False):
            return [bars([(name, float(share)) for name, share in given.items()])]
        facts = [(name, value) for name, value in given.items() if self._is_short(value)]
        others = [(name, value) for name, value in given.items() if not self._is_short(value)]
        found: list[Block] = []
        if facts:
            rows = tuple((name, shown(value, self._language)) for name, value in facts[:MOST_ROWS])
            found.append(Facts(rows))
        for name, value in others[:MOST_SECTIONS]:
            found.append(Section(cut(name, 120), tuple(self.blocks(value, depth + 1))))
        left = max(0, len(facts) - MOST_ROWS) + max(0, len(others) - MOST_SECTIONS)
        return found + self._left(left)

    def _is_short(self, value: Any) -> bool:
        if claim_of(value) is not None:
            return True
        if isinstance(value, bytes):
            return _picture(value) is None
        if isinstance(value, str):
            return len(value) <= 200 and "\n" not in value
        if isinstance(value, list | tuple):
            return len(value) <= 8 and all(
                isinstance(each, int | float) or (isinstance(each, str) and len(each) <= 40) for each in value
            )
        return not isinstance(value, dict) or not value

    def _of_list(self, given: Sequence[Any], depth: int) -> list[Block]:
        key = rows_key(given)
        if key is not None and all(len(row) == 2 for row in given):
            return [bars([(str(row[LABEL]), float(row[key])) for row in given])]
        if all(isinstance(each, int | float) for each in given):
            left = [f"… ({len(given) - _NUMBERS} more)"] if len(given) > _NUMBERS else []
            return [Text(", ".join([*map(shown, given[:_NUMBERS]), *left]))]
        if all(isinstance(each, dict) and claim_of(each) is None for each in given):
            return self.table(given)
        if all(self._is_short(each) for each in given):
            texts = tuple(shown(each, self._language, 2000) for each in given[:MOST_ITEMS])
            return [Items(texts), *self._left(len(given) - MOST_ITEMS)]
        some = given[:MOST_SECTIONS]
        found = [Section(str(at), tuple(self.blocks(each, depth + 1))) for at, each in enumerate(some, 1)]
        return [*found, *self._left(len(given) - MOST_SECTIONS)]

    def table(self, rows: Sequence[dict[str, Any]]) -> list[Block]:
        """A table of maps, a column for each of their first keys."""
        names = list(dict.fromkeys(name for row in rows[:MOST_ROWS] for name in row))[:MOST_COLUMNS]
        some = rows[:MOST_ROWS]
        right = frozenset(
            at for at, name in enumerate(names) if all(_is_number(row[name]) for row in some if name in row)
        )
        cells = tuple(
            tuple(shown(row[name], self._language) if name in row else "" for name in names) for row in some
        )
        return [
            Table(tuple(cut(name, 60) for name in names), cells, right),
            *self._left(len(rows) - MOST_ROWS),
        ]

    def _left(self, count: int) -> list[Block]:
        if count <= 0:
            return []
        text = f"另有 {count} 项未显示" if self._language == "zh" else f"{count} more are not shown"
        return [Note("warning", text)]


def bars(pairs: Sequence[tuple[str, float]]) -> Bars:
    """Labels with their probabilities, the likeliest first."""
    ranked = sorted(pairs, key=lambda pair: (-pair[1], pair[0]))[:MOST_ITEMS]
    return Bars(tuple((cut(name, 80), min(1.0, max(0.0, share)), percent(share)) for name, share in ranked))


def _picture(value: bytes) -> Picture | None:
    if len(value) > MOST_PICTURE:
        return None
    mime = next((mime for magic, mime in _MAGIC if value.startswith(magic)), None)
    if mime is None and value[:4] == b"RIFF" and value[8:12] == b"WEBP":
        mime = "image/webp"
    return None if mime is None else Picture(mime, value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
