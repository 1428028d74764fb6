"""The two tasks that Edgeway knows without a rules file, as rules entries."""

from __future__ import annotations

from typing import Any

_TEXT = {"query": "query", "text": "inputs.text"}

TEMPLATES: dict[str, dict[str, Any]] = {
    "financial_report": {
        "phrases": ["生成财报分析", "financial report"],
        "steps": [
            {
                "name": "tokenize",
                "capability": "finance/tokenize",
                "side": "local",
                "inputs": _TEXT,
                "weight": 0.2,
            },
            {
                "name": "entities",
                "capability": "nlp/entities",
                "side": "local",
                "inputs": _TEXT,
                "weight": 0.2,
            },
            {"name": "indicators", "capability": "finance/indicators", "side": "cloud", "weight": 0.4},
            {"name": "chart", "capability": "finance/chart", "side": "cloud", "weight": 0.2},
        ],
        "merge": {"strategy": "weighted_fusion"},
        # A report on a firm names it and its dates; with these every one would stay at the edge.
        "ignore": ["date", "organization"],
    },
    "traffic_forecast": {
        "phrases": ["实时路况预测", "live traffic"],
        "steps": [
            {"name": "gps_check", "capability": "geo/gps_check", "side": "local", "priority": 1},
            {"name": "forecast", "capability": "traffic/forecast", "side": "cloud", "priority": 2},
            {"name": "congestion", "capability": "traffic/congestion", "side": "cloud", "priority": 2},
        ],
        "merge": {"strategy": "priority_override"},
    },
}
"""By task name. A task of that name in the rules file takes from here what it does not say itself, where it
has no steps.
"""
