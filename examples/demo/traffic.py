"""The three capabilities of the live traffic example.

Every function takes (inputs, params) and gives (output, confidence). `params` is not read by any.
Input of all: `points` [{t: seconds, lat, lon: degrees, vehicle?}]. Forecast and congestion also take
`history` (km/h, one value a minute, oldest first, instead of points), `free_flow_kmh` (default 60);
forecast takes `horizon_min` (1 to 120, default 15) and `season_min` (length of a season in minutes).
Shared on purpose, so that priority override has something to override: `level`, which gps_check
gives roughly from absolute speeds and congestion gives against the free flow. Other keys are disjoint.
A confidence here is a rule of thumb, stated in the docstring; it is not calibrated.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from .tracks import check, mean_kmh, per_minute_kmh, points_of

Answer = tuple[dict[str, Any], float | None]

LEVELS = ("free", "slow", "heavy", "blocked")
_ROUGH_KMH = (45.0, 25.0, 10.0)
_SHARES = (0.75, 0.5, 0.25)
_LEVEL_WEIGHT, _TREND_WEIGHT, _DAMPING = 0.5, 0.3, 0.9
_MAX_HISTORY = 10_000


def _level(value: float, bounds: tuple[float, ...]) -> str:
    return LEVELS[sum(value < bound for bound in bounds)]


def _number(inputs: Mapping[str, Any], key: str, default: float, least: float, most: float) -> float:
    value = inputs.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise ValueError(f"inputs.{key} must be a number from {least:g} to {most:g}")
    return float(value)


def _speeds(inputs: Mapping[str, Any]) -> list[float]:
    """km/h a minute: `history` where it is given, else from the good points."""
    history = inputs.get("history")
    if history is None:
        return per_minute_kmh(check(points_of(inputs)).legs)
    if not isinstance(history, list | tuple) or not 0 < len(history) <= _MAX_HISTORY:
        raise ValueError(f"inputs.history must be a list of 1 to {_MAX_HISTORY} speeds in km/h")
    for place, value in enumerate(history):
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 500:
            raise ValueError(f"inputs.history[{place}] must be a speed from 0 to 500 km/h")
    return [float(value) for value in history]


def gps_check(inputs: Mapping[str, Any], params: Mapping[str, Any]) -> Answer:
    """{flags: [[fault]], points, valid_share, mean_speed_kmh?, level?}; one list of faults a point.

    Faults: out_of_range, duplicate, out_of_order, jump (faster than 200 km/h since the vehicle's last
    good point). level by mean speed: free from 45 km/h, slow from 25, heavy from 10, else blocked.
    Confidence 0.6 * valid share.
    """
    checked = check(points_of(inputs))
    share = sum(not faults for faults in checked.flags) / len(checked.flags)
    output: dict[str, Any] = {
        "flags": checked.flags,
        "points": len(checked.flags),
        "valid_share": round(share, 4),
    }
    speed = mean_kmh(checked.legs)
    if speed is None:
        return output, 0.0
    output |= {"mean_speed_kmh": round(speed, 2), "level": _level(speed, _ROUGH_KMH)}
    return output, round(0.6 * share, 4)


def holt(series: Sequence[float], steps: int) -> list[float]:
    """Damped-trend exponential smoothing (Gardner and McKenzie, 1985): weights 0.5 and 0.3, damping 0.9."""
    level, trend = series[0], series[1] - series[0] if len(series) > 1 else 0.0
    for value in series[1:]:
        before = level
        level = _LEVEL_WEIGHT * value + (1 - _LEVEL_WEIGHT) * (level + _DAMPING * trend)
        trend = _TREND_WEIGHT * (level - before) + (1 - _TREND_WEIGHT) * _DAMPING * trend
    reach, out = 0.0, []
    for step in range(1, steps + 1):
        reach += _DAMPING**step
        out.append(level + reach * trend)
    return out


def forecast(inputs: Mapping[str, Any], params: Mapping[str, Any]) -> Answer:
    """{forecast: [{minute: 1.., speed_kmh}], method, observed_minutes}; within 0 and 1.2 * free flow.

    `seasonal_naive` (the value one season ago) where `season_min` is given and one season was observed, else
    `damped_holt`. Confidence n / (n + 5) for n observed minutes, at most 0.9. ValueError without any speed.
    """
    series = _speeds(inputs)
    if not series:
        raise ValueError("inputs.points give no speed: two good points of one vehicle are needed")
    steps = int(_number(inputs, "horizon_min", 15, 1, 120))
    top = 1.2 * _number(inputs, "free_flow_kmh", 60, 1, 200)
    season = int(_number(inputs, "season_min", 0, 0, _MAX_HISTORY))
    seasonal = 0 < season <= len(series)
    ahead = [series[-season + step % season] for step in range(steps)] if seasonal else holt(series, steps)
    rows = [{"minute": k, "speed_kmh": round(min(max(v, 0.0), top), 2)} for k, v in enumerate(ahead, start=1)]
    method = "seasonal_naive" if seasonal else "damped_holt"
    sure = round(min(0.9, len(series) / (len(series) + 5)), 4)
    return {"forecast": rows, "method": method, "observed_minutes": len(series)}, sure


def congestion(inputs: Mapping[str, Any], params: Mapping[str, Any]) -> Answer:
    """{level, flow_ratio, recent_speed_kmh, free_flow_kmh}; from the last five minutes.

    free from 0.75, slow from 0.5, heavy from 0.25, else blocked. Confidence n / (n + 1) for n minutes used,
    at most 0.9. ValueError without any speed.
    """
    recent = _speeds(inputs)[-5:]
    if not recent:
        raise ValueError("inputs.points give no speed: two good points of one vehicle are needed")
    free = _number(inputs, "free_flow_kmh", 60, 1, 200)
    speed = sum(recent) / len(recent)
    output = {
        "level": _level(speed / free, _SHARES),
        "flow_ratio": round(speed / free, 4),
        "recent_speed_kmh": round(speed, 2),
        "free_flow_kmh": free,
    }
    return output, round(min(0.9, len(recent) / (len(recent) + 1)), 4)
