"""The four requests of the decomposed examples: invented companies, simulated GPS tracks."""

import math
import random
from typing import Any

_CHINESE = (
    "星河智造股份有限公司发布2025年第三季度财报：营业收入12.6亿元，上年同期10.5亿元，同比增长20%。"
    "营业成本7.56亿元，上年同期6.72亿元；净利润1.89亿元，上年同期1.26亿元。"
    "截至2025年9月30日，总资产48.2亿元，总负债19.28亿元。"
)
_ENGLISH = (
    "Northwind Valley Instruments Inc. reported revenue of $1.26 billion for Q3 2025, up 20% from "
    "$1.05 billion. Cost of sales was $756 million, compared with $672 million. "
    "Net profit reached $189 million versus "
    "$126 million a year earlier. On 30 September 2025 total assets were $4.82 billion and total "
    "liabilities $1.928 billion."
)


def track(vehicle: str, lat: float, lon: float, seed: int, minutes: int = 12) -> list[dict[str, Any]]:
    """A simulated drive into a jam: one point every 20 s, from about 50 down to about 15 km/h, north-east.

    One point is sent twice and one lies 0.5 degrees off, so that the check has something to find.
    """
    rng = random.Random(seed)
    points: list[dict[str, Any]] = []
    steps = minutes * 3
    for step in range(steps):
        points.append({"vehicle": vehicle, "t": step * 20, "lat": round(lat, 6), "lon": round(lon, 6)})
        speed = 50 - 35 * step / steps + rng.uniform(-4, 4)
        ahead = speed / 3600 * 20 / 111.2 / math.sqrt(2)
        lat, lon = lat + ahead, lon + ahead / math.cos(math.radians(lat))
    points.insert(6, dict(points[5]))
    points[15] = {**points[15], "lat": round(points[15]["lat"] + 0.5, 6)}
    return points


def requests() -> list[dict[str, Any]]:
    """Requests as sent by a plain JSON producer; the router finds the task by the phrase in `query`."""
    beijing = track("car-a", 39.90, 116.38, seed=1) + track("car-b", 39.91, 116.39, seed=2)
    berlin = track("car-c", 52.51, 13.37, seed=3) + track("car-d", 52.52, 13.38, seed=4)
    return [
        {"id": "demo-finance-1", "query": "生成财报分析", "inputs": {"text": _CHINESE}},
        {"id": "demo-finance-2", "query": "Write a financial report analysis", "inputs": {"text": _ENGLISH}},
        {"id": "demo-traffic-1", "query": "实时路况预测", "inputs": {"points": beijing, "free_flow_kmh": 60}},
        {
            "id": "demo-traffic-2",
            "query": "Live traffic forecast, please",
            "inputs": {"points": berlin, "free_flow_kmh": 50, "horizon_min": 10},
        },
    ]
