"""Figures in tables: lists of rows, CSV text, or `{label: {period: value}}`."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from workers.errors import BadInput
from workers.library.finance.amounts import CURRENCIES, find_amounts, find_percents, narrow, power_of, scaled
from workers.library.finance.items import STATED, TERMS, is_loss, item_of
from workers.library.finance.passages import Figure, Reading, Stated
from workers.library.finance.periods import period_of, recency

MOST_ROWS, MOST_COLUMNS = 500, 24
_LARGEST = 10**18
_UNIT = re.compile(
    r"\bin (thousand|million|billion)s?\b"
    r"|[（(](?:单位[:：])?\s?(?:人民币)?(百万|千万|万亿|亿|万|千)[美港日欧]?元?[)）]"
    r"|单位[:：]\s?(?:人民币)?(百万|千万|万亿|亿|万|千)"
    r"|[（(][^()（）]{0,12}?\b(thousand|million|billion|mn|bn)s?\b[^()（）]{0,12}[)）]",
    re.IGNORECASE,
)
_CURRENCY = re.compile(
    r"US\$|HK\$|[$€£¥￥]|\b(?:USD|EUR|GBP|CNY|RMB|HKD|JPY)\b|人民币|美元|港元|日元|欧元|元"
)
_PLAIN = re.compile(
    r"([(（])?\s?([-−–])?\s?(US\$|HK\$|[$€£¥￥])?\s?([-−–(（])?"
    r"(\d{1,3}(?:,\d{3}){1,5}(?:\.\d{1,8})?|\d{1,18}(?:\.\d{1,8})?)\s?([)）])?"
)
_DIGIT = re.compile(r"\d")
_CODE = re.compile(r"[A-Za-z]{3}")
_NOTHING = ("", "-", "–", "—", "--", "n/a", "na", "n.a.", "nil", "不适用")
_ITEM_OF_RATIO = {term: name for name, terms in STATED.items() for term in terms}


class Row(NamedTuple):
    label: str
    cells: Sequence[Any]


class Grid(NamedTuple):
    """A table: periods of the columns, rows, and what stands around them (title, corner)."""

    periods: Sequence[str]
    rows: Sequence[Row]
    around: str


def read_table(table: Any, unit: str = "", currency: str = "", *, strict: bool = False) -> Reading:
    """The figures of a table in `unit` and `currency`, else in those that its labels name.

    Per-share amounts are never scaled. With `strict` a label that is no item is an error.

    Raises:
        BadInput: no table, too large a one, a cell that is no finite number, an unknown unit or label.
    """
    grid = _grid(table)
    if len(grid.rows) > MOST_ROWS or len(grid.periods) > MOST_COLUMNS:
        raise BadInput(
            f"the table has more than {MOST_ROWS} rows or {MOST_COLUMNS} columns: send it in parts"
        )
    power = power_of(unit) if unit else _unit_in(grid.around)
    known = _named(currency) if currency.strip() else _currency_in(grid.around)
    found = Reading()
    for number, row in enumerate(grid.rows, start=1):
        item, ratio = item_of(row.label), _ITEM_OF_RATIO.get(row.label.strip().lower())
        if item is None and ratio is None:
            if strict:
                raise BadInput(f"inputs.figures has a key that is no item; use {', '.join(TERMS)}")
            found.unread.append(row.label[:80])
            continue
        own = _unit_in(row.label) if not unit else 0
        of_row = (own or power, known or _currency_in(row.label))
        for column, (period, cell) in enumerate(zip(grid.periods, row.cells, strict=False), start=1):
            where = {"row": number, "column": column, "label": row.label[:80]}
            _take(found, item, ratio, period, cell, of_row, where)
    return found


def _take(
    found: Reading,
    item: str | None,
    ratio: str | None,
    period: str,
    cell: Any,
    of_row: tuple[int, str | None],
    where: dict[str, Any],
) -> None:
    if isinstance(cell, str) and (shares := list(find_percents(cell))):
        if ratio is not None:
            found.stated.append(
                Stated(ratio, "ratio", shares[0].value, shares[0].within, where | {"period": period})
            )
        else:
            found.unread.append(f"{where['label']}, column {where['column']}")
        return
    power, currency = of_row
    read = _cell(cell, 0 if item == "eps" else power, where, currency)
    if read is None and isinstance(cell, str) and _DIGIT.search(cell[:100]):
        found.unread.append(f"{where['label']}, column {where['column']}")
    if read is None or item is None:
        return
    value, within, own = read
    if is_loss(where["label"]):
        value = -abs(value)
    money = None if item == "shares" else own or currency
    found.take(Figure(item, period, value, money, where, within))


def _cell(
    cell: Any, power: int, where: Mapping[str, Any], known: str | None
) -> tuple[Decimal, Decimal, str | None] | None:
    """Value, half a unit of its last digit and the currency it names; None of an empty cell or of words.

    A bare `$` or `¥` is of the currency that is `known`, since several have it.
    """
    place = f"the table's row {where['row']}, column {where['column']}"
    if cell is None or isinstance(cell, bool):
        return None
    if isinstance(cell, int | float):
        if not abs(cell) <= _LARGEST:
            raise BadInput(f"{place} is no finite number within 1e18")
        value, within = scaled(format(Decimal(str(cell)), "f"), power)
    elif isinstance(cell, str):
        plain = narrow(cell[:100]).strip()
        if plain.lower() in _NOTHING:
            return None
        match = _PLAIN.fullmatch(plain)
        if match is None:
            amounts = list(find_amounts(plain))
            return (amounts[0].value, amounts[0].within, amounts[0].currency) if len(amounts) == 1 else None
        value, within = scaled(match[5], power)
        if match[2] or match[4] or (match[1] and match[6]):
            value = -value
        sign = None if match[3] in ("$", "¥", "￥") and known is not None else match[3]
        return value, within, CURRENCIES[sign.lower()] if sign else None
    else:
        raise BadInput(f"{place} is neither a number nor a text")
    return value, within, None


def _grid(table: Any) -> Grid:
    if isinstance(table, str):
        return _of_csv(table)
    if isinstance(table, Mapping):
        if "rows" in table:
            columns = table.get("columns")
            if not isinstance(columns, list | tuple) or not columns:
                raise BadInput("inputs.table.columns is a list of the periods that the columns are of")
            return _of_rows(list(columns), table["rows"])
        return _of_labels(table)
    if isinstance(table, list | tuple) and table and all(isinstance(row, list | tuple) for row in table):
        return _of_rows(list(table[0]), table[1:])
    raise BadInput("inputs.table is CSV text, {columns, rows}, a list of rows, or {label: {period: value}}")


def _of_rows(columns: list[Any], rows: Any) -> Grid:
    if not isinstance(rows, list | tuple) or not all(isinstance(row, list | tuple) and row for row in rows):
        raise BadInput("inputs.table.rows is a list of rows [label, value, ...]")
    widest = max((len(row) for row in rows), default=0)
    heads = [str(column) for column in columns]
    corner = heads.pop(0) if len(heads) >= widest > 0 else ""
    return Grid(
        [period_of(head) for head in heads],
        [Row(str(row[0])[:200], row[1:]) for row in rows],
        " ".join([corner, *heads])[:2000],
    )


def _of_labels(table: Mapping[Any, Any]) -> Grid:
    heads: dict[str, str] = {}
    for values in table.values():
        for head in values if isinstance(values, Mapping) else ("current",):
            heads.setdefault(str(head), period_of(str(head)))
    rows = []
    for label, values in table.items():
        held = {str(k): v for k, v in values.items()} if isinstance(values, Mapping) else {"current": values}
        rows.append(Row(str(label)[:200], [held.get(head) for head in heads]))
    return Grid(list(heads.values()), rows, " ".join(heads)[:2000])


def _of_csv(text: str) -> Grid:
    mark = _separator(text)
    try:
        lines = [
            row for row in csv.reader(io.StringIO(text), delimiter=mark) if any(cell.strip() for cell in row)
        ]
    except csv.Error as error:
        raise BadInput(
            "inputs.table is no CSV text: a field is too long or a quote is never closed"
        ) from error
    head = next((place for place, line in enumerate(lines[:5]) if _has_periods(line)), None)
    if head is None:
        head = next(
            (place for place, line in enumerate(lines) if sum(map(bool, map(str.strip, line))) > 1), 0
        )
    titles, lines = [" ".join(line) for line in lines[:head]], lines[head:]
    if len(lines) < 2:
        raise BadInput("inputs.table has no header with periods and a row below it")
    grid = _of_rows(list(lines[0]), lines[1:])
    return grid._replace(around=" ".join([*titles, grid.around])[:2000])


def _separator(text: str) -> str:
    """What parts the cells: it stands in the most of the first lines. A comma, which numbers hold too, only
    where no other does in as many."""
    lines = [line for line in text.split("\n", 20)[:20] if line.strip()]
    return max("\t;|,", key=lambda mark: sum(mark in line for line in lines))


def _has_periods(line: Sequence[str]) -> bool:
    return any(recency(period_of(cell)) > (0, 0, 0) for cell in line[1:])


def _unit_in(text: str) -> int:
    match = _UNIT.search(text)
    return power_of(next(group for group in match.groups() if group)) if match else 0


def _named(currency: str) -> str:
    """Its ISO 4217 code.

    Raises:
        BadInput: neither a code nor a known name.
    """
    plain = currency.strip()
    if plain.lower() in CURRENCIES:
        return CURRENCIES[plain.lower()]
    if _CODE.fullmatch(plain) is None:
        raise BadInput("the currency is not known; give its ISO 4217 code, such as CHF")
    return plain.upper()


def _currency_in(text: str) -> str | None:
    match = _CURRENCY.search(text)
    return CURRENCIES[match[0].lower()] if match else None
