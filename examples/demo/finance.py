"""The four capabilities of the financial report example.

Every function takes (inputs, params) and gives (output, confidence). `params` is not read by any.
A confidence here is a rule of thumb, stated in the docstring; it is not calibrated.
Input of all: `text` (English, Chinese or both); indicators and chart also take `figures`
(item -> number or {current, previous}), `unit` (such as `million` or `亿`) and `currency`.
Shared on purpose, so that weighted fusion has something to weigh: `revenue`, a number in whole
units of currency, which entities and indicators both estimate. All other keys are disjoint.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from .entities import find_entities, tokenise
from .figures import TERMS, Figure, from_inputs, text_of
from .money import find_money

Answer = tuple[dict[str, Any], float | None]

_RATIOS = {
    "gross_margin": ("gross_profit", "revenue"),
    "operating_margin": ("operating_profit", "revenue"),
    "net_margin": ("net_profit", "revenue"),
    "debt_to_assets": ("liabilities", "assets"),
    "asset_turnover": ("revenue", "assets"),
}
_WINDOW = 40


def tokenize(inputs: Mapping[str, Any], params: Mapping[str, Any]) -> Answer:
    """{tokens: [{text, kind, start}], token_count, kinds: {kind: count}}; confidence None: no guess."""
    found = tokenise(text_of(inputs))
    tokens = [{"text": text, "kind": kind, "start": start} for text, kind, start in found]
    return {
        "tokens": tokens,
        "token_count": len(tokens),
        "kinds": dict(Counter(kind for _, kind, _ in found)),
    }, None


def _near_revenue(text: str) -> float | None:
    """The first amount within 40 characters behind a word for revenue, whatever sentence or year it is of."""
    lower = text.lower()
    places = [lower.find(term) + len(term) for term in TERMS["revenue"] if term in lower]
    near = [
        money.value for money in find_money(text) if any(0 <= money.start - at <= _WINDOW for at in places)
    ]
    return near[0] if near else None


def entities(inputs: Mapping[str, Any], params: Mapping[str, Any]) -> Answer:
    """{entities: [{kind, text, start, end, value?, currency?}], companies, periods, revenue?}.

    Kinds: company, money, percentage, date, period.
    Confidence 0.6 with a revenue, 0.5 with other entities, 0.1 with none.
    """
    text = text_of(inputs)
    found = find_entities(text)
    output: dict[str, Any] = {
        "entities": [{k: v for k, v in asdict(entity).items() if v is not None} for entity in found],
        "companies": list(dict.fromkeys(entity.text for entity in found if entity.kind == "company")),
        "periods": list(dict.fromkeys(entity.text for entity in found if entity.kind == "period")),
    }
    revenue = _near_revenue(text)
    if revenue is not None:
        output["revenue"] = revenue
        return output, 0.6
    return output, 0.5 if found else 0.1


def _growth(figure: Figure) -> float | None:
    if figure.current is None or not figure.previous:
        return None
    return round((figure.current - figure.previous) / abs(figure.previous), 4)


def _completed(found: dict[str, Figure]) -> dict[str, Figure]:
    """Gross profit from revenue and cost, where it is not stated itself."""
    revenue, cost = found.get("revenue"), found.get("cost")
    if "gross_profit" in found or revenue is None or cost is None:
        return found
    pairs = ((revenue.current, cost.current), (revenue.previous, cost.previous))
    current, previous = (None if a is None or b is None else round(a - b, 2) for a, b in pairs)
    return {**found, "gross_profit": Figure(current, previous, revenue.currency)}


def indicators(inputs: Mapping[str, Any], params: Mapping[str, Any]) -> Answer:
    """{figures: {item: {current, previous, currency}}, growth: {item: share}, ratios, missing, revenue?}.

    growth = (current - previous) / |previous|; ratios are plain quotients of current figures (see `_RATIOS`).
    Confidence 0.95 for figures that were given, 0.8 for a revenue read from the text, 0.1 without one.
    """
    found = _completed(from_inputs(inputs))
    now = {item: figure.current for item, figure in found.items()}
    ratios = {
        name: round(top / bottom, 4)
        for name, (over, under) in _RATIOS.items()
        if (top := now.get(over)) is not None and (bottom := now.get(under))
    }
    output: dict[str, Any] = {
        "figures": {item: asdict(figure) for item, figure in found.items()},
        "growth": {item: growth for item, figure in found.items() if (growth := _growth(figure)) is not None},
        "ratios": ratios,
        "missing": [item for item in TERMS if item not in found],
    }
    if (revenue := now.get("revenue")) is None:
        return output, 0.1
    output["revenue"] = revenue
    return output, 0.95 if inputs.get("figures") is not None else 0.8


def chart(inputs: Mapping[str, Any], params: Mapping[str, Any]) -> Answer:
    """{chart: a Vega-Lite 5 bar chart of all figures, previous beside current}; confidence None."""
    found = from_inputs(inputs)
    rows = [
        {"item": item, "period": period, "value": value, "currency": figure.currency}
        for item, figure in found.items()
        for period, value in (("previous", figure.previous), ("current", figure.current))
        if value is not None
    ]
    spec = {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "title": "Figures of the report",
        "data": {"values": rows},
        "mark": "bar",
        "encoding": {
            "x": {"field": "item", "type": "nominal", "sort": list(found)},
            "xOffset": {"field": "period", "sort": ["previous", "current"]},
            "y": {"field": "value", "type": "quantitative", "axis": {"format": "~s"}},
            "color": {"field": "period", "type": "nominal", "sort": ["previous", "current"]},
        },
    }
    return {"chart": spec}, None
