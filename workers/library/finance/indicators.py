"""`finance/indicators`: growth, margins and ratios from figures in text or in a table."""

from __future__ import annotations

from typing import Any

from workers.backends.function import capability
from workers.errors import BadInput
from workers.library.finance.formulas import Computed, Use, compute, missing
from workers.library.finance.passages import Reading, read_text
from workers.library.finance.tables import read_table

MOST_TEXT = 100_000
MOST_CONFLICTS = 50
"""Those are told; a text of many years may have thousands."""
QUALITY = (
    "figures read from 10 passages the rules were not written for: precision 1.00, recall 0.82; from"
    " the 24 they were written for all, with nothing false; ratios are exact"
)
SOURCE = "rules of this project; passages after filings with the SEC, and invented ones in Chinese"


@capability(
    "local/finance/indicators",
    model="rules",
    cacheable=True,
    licence="Apache-2.0",
    source=SOURCE,
    quality=QUALITY,
)
@capability(
    "cloud/finance/indicators",
    model="rules",
    cacheable=True,
    licence="Apache-2.0",
    source=SOURCE,
    quality=QUALITY,
)
def indicators(
    text: str = "",
    query: str = "",
    figures: dict[str, Any] | None = None,
    table: Any = None,
    unit: str = "",
    currency: str = "",
) -> tuple[dict[str, Any], float | None]:
    """Growth, margins, debt, liquidity and returns with formulas, from figures in text or in a table.

    Confidence 0 where no figure was found, else None.
    """
    reading = read_inputs(text or query, figures, table, unit, currency)
    found = compute(reading)
    return _answer(found, reading), None if found.figures else 0.0


def read_inputs(text: str, figures: dict[str, Any] | None, table: Any, unit: str, currency: str) -> Reading:
    """The figures of the first of these that is given: `figures`, `table`, `text`.

    Raises:
        BadInput: none is, or it cannot be read.
    """
    if figures is not None:
        return read_table(figures, unit, currency, strict=True)
    if table is not None:
        return read_table(table, unit, currency)
    if not text.strip():
        raise BadInput("give inputs.text with figures in it, inputs.table or inputs.figures")
    if len(text) > MOST_TEXT:
        raise BadInput(
            f"inputs.text has {len(text)} characters; at most {MOST_TEXT} are read: send it in parts"
        )
    return read_text(text)


def _answer(found: Computed, reading: Reading) -> dict[str, Any]:
    latest = found.periods[0] if found.periods else "current"
    shown: dict[str, dict[str, Any]] = {}
    for (item, period), figure in found.figures.items():
        row = Use(figure).row()
        shown.setdefault(item, {})[period] = {k: row[k] for k in row if k not in ("item", "period")}
    now = [each for each in found.indicators if each.period == latest]
    answer: dict[str, Any] = {
        "period": latest,
        "figures": shown,
        "indicators": [each.row() for each in found.indicators],
        "growth": {each.name: float(each.value) for each in now if each.kind == "yoy"},
        "growth_qoq": {each.name: float(each.value) for each in now if each.kind == "qoq"},
        "ratios": {each.name: float(each.value) for each in now if each.kind == "ratio"},
        "missing": dict(missing(found, latest)),
        "conflicts": found.conflicts[:MOST_CONFLICTS],
        "unread": reading.unread[:50],
    }
    if (revenue := found.figures.get(("revenue", latest))) is not None:
        answer["revenue"] = float(revenue.value)
    return answer
