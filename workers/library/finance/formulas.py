"""Indicators from figures, each with its formula and what went into it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from typing import Any, NamedTuple

from workers.library.finance.items import TERMS
from workers.library.finance.passages import Figure, Reading, Stated
from workers.library.finance.periods import Step, before, recency

DIGITS = 6
"""Decimals of a ratio."""


class Ratio(NamedTuple):
    """`over` / `under`."""

    over: str
    under: str


RATIOS = {
    "gross_margin": Ratio("gross_profit", "revenue"),
    "operating_margin": Ratio("operating_profit", "revenue"),
    "net_margin": Ratio("net_profit", "revenue"),
    "debt_ratio": Ratio("liabilities", "assets"),
    "debt_to_equity": Ratio("liabilities", "equity"),
    "current_ratio": Ratio("current_assets", "current_liabilities"),
    "asset_turnover": Ratio("revenue", "assets"),
    "roa": Ratio("net_profit", "assets"),
    "roe": Ratio("net_profit", "equity"),
}
_DERIVED = {
    "gross_profit": ("revenue", "cost"),
    "liabilities": ("assets", "equity"),
    "equity": ("assets", "liabilities"),
}


class Use(NamedTuple):
    """A figure that went into an indicator."""

    figure: Figure

    def row(self) -> dict[str, Any]:
        found = self.figure
        row = {"item": found.item, "period": found.period, "value": float(found.value), "where": found.where}
        return row if found.currency is None else row | {"currency": found.currency}


class Indicator(NamedTuple):
    """`kind` is yoy, qoq, ratio or amount; `stated`: the input says so itself, nothing was computed."""

    name: str
    kind: str
    period: str
    value: Decimal
    formula: str
    uses: tuple[Use, ...]
    within: Decimal = Decimal(0)
    stated: bool = False
    where: dict[str, Any] | None = None

    def row(self) -> dict[str, Any]:
        row: dict[str, Any] = {
            "name": self.name,
            "kind": self.kind,
            "period": self.period,
            "value": float(self.value),
            "formula": self.formula,
            "uses": [use.row() for use in self.uses],
        }
        if self.kind == "amount" and self.uses[0].figure.currency is not None:
            row["currency"] = self.uses[0].figure.currency
        return row if self.where is None else row | {"stated": True, "where": self.where}


@dataclass(slots=True)
class Computed:
    """What came of the figures; `periods` the latest first."""

    figures: dict[tuple[str, str], Figure]
    periods: list[str]
    indicators: list[Indicator] = field(default_factory=list)
    conflicts: list[dict[str, Any]] = field(default_factory=list)


def compute(reading: Reading) -> Computed:
    """Every indicator that the figures allow, in decimals: nothing but the last rounding is inexact."""
    periods = sorted(dict.fromkeys(period for _, period in reading.figures), key=recency, reverse=True)
    found = Computed(_completed(reading.figures, periods), periods)
    with localcontext() as context:
        context.prec = 40
        for period in periods:
            for item in TERMS:
                _grow(found, item, period)
            for name in RATIOS:
                _ratio(found, name, period)
            _eps(found, period)
    _compare(found, reading)
    return found


def _completed(given: dict[tuple[str, str], Figure], periods: list[str]) -> dict[tuple[str, str], Figure]:
    """With differences that statements leave out: gross profit, liabilities or equity."""
    known = dict(given)
    for period in periods:
        for item, (whole, part) in _DERIVED.items():
            a, b = given.get((whole, period)), given.get((part, period))
            if (item, period) not in known and a and b and a.currency == b.currency:
                where = {"derived": f"{whole} - {part}", "from": [a.where, b.where]}
                within = a.within + b.within
                known[item, period] = Figure(item, period, a.value - b.value, a.currency, where, within)
    return known


def _grow(found: Computed, item: str, period: str) -> None:
    now = found.figures.get((item, period))
    steps: tuple[Step, ...] = ("yoy", "qoq")
    for step in steps:
        then = found.figures.get((item, before(period, step) or ""))
        if (
            now is None
            or then is None
            or not then.value
            or not _same_money(found, f"{item}_{step}", now, then)
        ):
            continue
        base = abs(then.value)
        value = (now.value - then.value) / base
        within = (now.within + then.within * abs(now.value) / base) / base
        formula = f"({item}[{now.period}] - {item}[{then.period}]) / |{item}[{then.period}]|"
        found.indicators.append(
            Indicator(item, step, period, round(value, DIGITS), formula, (Use(now), Use(then)), within)
        )


def _ratio(found: Computed, name: str, period: str) -> None:
    over, under = (found.figures.get((item, period)) for item in RATIOS[name])
    if over is None or under is None or not _same_money(found, name, over, under):
        return
    uses, divisor, below = [Use(over), Use(under)], under.value, RATIOS[name].under
    earlier = found.figures.get((below, before(period, "yoy") or "")) if name == "roe" else None
    said = f"{below}[{period}]"
    if earlier is not None and earlier.currency == under.currency:
        uses.append(Use(earlier))
        divisor = (under.value + earlier.value) / 2
        said = f"mean({said}, {below}[{earlier.period}])"
    if divisor <= 0:
        return
    within = (over.within + under.within * abs(over.value / divisor)) / divisor
    value = round(over.value / divisor, DIGITS)
    formula = f"{RATIOS[name].over}[{period}] / {said}"
    found.indicators.append(Indicator(name, "ratio", period, value, formula, tuple(uses), within))


def _eps(found: Computed, period: str) -> None:
    stated = found.figures.get(("eps", period))
    profit, shares = found.figures.get(("net_profit", period)), found.figures.get(("shares", period))
    if stated is not None:
        found.indicators.append(
            Indicator("eps", "amount", period, stated.value, "as stated", (Use(stated),), stated.within)
        )
    elif profit is not None and shares is not None and shares.value > 0:
        value = round(profit.value / shares.value, DIGITS)
        formula = f"net_profit[{period}] / shares[{period}]"
        found.indicators.append(
            Indicator("eps", "amount", period, value, formula, (Use(profit), Use(shares)))
        )


def _same_money(found: Computed, name: str, a: Figure, b: Figure) -> bool:
    if a.currency == b.currency or None in (a.currency, b.currency):
        return True
    found.conflicts.append({"kind": "currencies", "name": name, "uses": [Use(a).row(), Use(b).row()]})
    return False


def _compare(found: Computed, reading: Reading) -> None:
    """What the input says twice and not alike; and what it states that could not be computed."""
    for other in reading.others:
        used = found.figures[other.item, other.period]
        found.conflicts.append({"kind": "two_values", "used": Use(used).row(), "other": Use(other).row()})
    latest = found.periods[0] if found.periods else "current"
    told: set[tuple[str, str, str]] = set()
    for stated in reading.stated:
        period = stated.where.get("period", latest)
        key = (stated.name, stated.kind, period)
        if key in told:
            continue
        told.add(key)
        known = next((each for each in found.indicators if (each.name, each.kind, each.period) == key), None)
        if known is None:
            found.indicators.append(_as_stated(stated, period))
        elif abs(known.value - stated.value) > known.within + stated.within + Decimal(10) ** -DIGITS:
            row = {"name": stated.name, "of": stated.kind, "computed": float(known.value)}
            found.conflicts.append(
                {"kind": "stated_differs", **row, "stated": float(stated.value), "where": stated.where}
            )


def _as_stated(stated: Stated, period: str) -> Indicator:
    return Indicator(
        stated.name, stated.kind, period, stated.value, "as stated", (), stated.within, True, stated.where
    )


def missing(found: Computed, period: str) -> Iterator[tuple[str, list[str]]]:
    """The ratios that are not there, and the items each lacks."""
    there = {each.name for each in found.indicators if each.period == period}
    for name, needs in RATIOS.items():
        if name not in there:
            yield name, [item for item in needs if (item, period) not in found.figures]
