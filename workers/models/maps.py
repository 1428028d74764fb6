"""Monotone maps of a confidence in [0, 1] to a better one, and their form in a card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
EPSILON = 1e-9
DECIMALS = 9
"""Of a curve's knots."""
LONGEST = 4
"""So many maps are applied one after the other; a longer chain becomes one curve."""
_KNOTS = 513


def logit(confidences: ArrayLike) -> Floats:
    """Log-odds; 0 and 1 are taken for EPSILON away from them."""
    sure = np.clip(np.asarray(confidences, np.float64), EPSILON, 1 - EPSILON)
    odds: Floats = np.log(sure) - np.log1p(-sure)
    return odds


@dataclass(frozen=True, slots=True)
class Temperature:
    """The log-odds divided by `value`, which is above 0: 1/2 stays where it is."""

    method: ClassVar[str] = "temperature"
    value: float

    def apply(self, confidences: ArrayLike) -> Floats:
        """The mapped confidences, of the same shape."""
        # Beyond 500 the sigmoid is 0 or 1 and the exponential overflows.
        odds = np.clip(logit(confidences) / self.value, -500.0, 500.0)
        out: Floats = 1.0 / (1.0 + np.exp(-odds))
        return out

    def to_card(self) -> dict[str, Any]:
        """Its form in a card."""
        return {"method": self.method, "temperature": self.value}


@dataclass(frozen=True, slots=True)
class Curve:
    """A line through points, flat before the first and after the last.

    `x` rises by EPSILON at least, `y` never falls.
    Both have one length of at least 1.
    """

    method: ClassVar[str] = "isotonic"
    x: tuple[float, ...]
    y: tuple[float, ...]

    def apply(self, confidences: ArrayLike) -> Floats:
        """The mapped confidences, of the same shape."""
        out: Floats = np.interp(np.asarray(confidences, np.float64), self.x, self.y)
        return out

    def to_card(self) -> dict[str, Any]:
        """Its form in a card."""
        return {"method": self.method, "x": list(self.x), "y": list(self.y)}


Map = Temperature | Curve


@dataclass(frozen=True, slots=True)
class Calibrator:
    """Maps applied in order. Without any, a confidence stays what it is; the order of two is never turned."""

    maps: tuple[Map, ...] = ()

    def __call__(self, confidence: float) -> float:
        """One confidence in [0, 1]."""
        return float(self.apply(confidence)) if self.maps else confidence

    def apply(self, confidences: ArrayLike) -> Floats:
        """Many confidences."""
        found = np.asarray(confidences, np.float64)
        for one in self.maps:
            found = one.apply(found)
        return found

    @property
    def method(self) -> str:
        """That of the last map; `none` where there is none."""
        return self.maps[-1].method if self.maps else "none"

    def then(self, *more: Map) -> Calibrator:
        """With `more` applied after. Two temperatures become one; a long chain becomes one curve."""
        maps = list(self.maps)
        for one in more:
            last = maps[-1] if maps else None
            if isinstance(one, Temperature) and isinstance(last, Temperature):
                maps[-1] = Temperature(last.value * one.value)
            else:
                maps.append(one)
        whole = Calibrator(tuple(maps))
        return whole if len(maps) <= LONGEST else Calibrator((whole._flat(),))

    def _flat(self) -> Curve:
        ends = 1 / (1 + np.exp(-np.linspace(-12, 12, _KNOTS)))
        x = np.unique(np.concatenate([[0.0], ends, [1.0]]))
        return Curve(tuple(x.tolist()), tuple(np.maximum.accumulate(self.apply(x)).tolist()))

    def to_card(self) -> list[dict[str, Any]]:
        """Its form in a card, under `maps`."""
        return [one.to_card() for one in self.maps]

    @classmethod
    def from_card(cls, maps: Sequence[Mapping[str, Any]]) -> Calibrator:
        """The reverse of `to_card`.

        Raises:
            ValueError: a map that is unknown, or would not keep the order of confidences.
        """
        return cls(tuple(_read(one) for one in maps))


def _read(one: Mapping[str, Any]) -> Map:
    method = one.get("method")
    try:
        if method == "temperature":
            value = float(one["temperature"])
            if not 0 < value < float("inf"):
                raise ValueError(f"temperature is {value}; it must be above 0")
            return Temperature(value)
        if method == "isotonic":
            x, y = (tuple(float(v) for v in one[key]) for key in ("x", "y"))
            _check(x, y)
            return Curve(x, y)
    except (KeyError, TypeError) as error:
        raise ValueError(f"the calibration map {method!r} lacks or garbles {error}") from error
    raise ValueError(f"calibration method {method!r} is unknown; known are temperature and isotonic")


def _check(x: tuple[float, ...], y: tuple[float, ...]) -> None:
    if not x or len(x) != len(y):
        raise ValueError(f"an isotonic map has {len(x)} x and {len(y)} y; give as many of both, at least one")
    if not all(0 <= value <= 1 for value in (*x, *y)):
        raise ValueError("an isotonic map leaves [0, 1]")
    if any(b - a < EPSILON / 2 for a, b in pairwise(x)) or any(a > b for a, b in pairwise(y)):
        raise ValueError("an isotonic map must have rising x and y that never falls")
