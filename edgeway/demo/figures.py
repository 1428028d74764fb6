"""The demonstration's figures. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from edgeway.demo.material import Question
from edgeway.demo.traffic import Traffic
from schemas.messages import Result


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` of `values` do not exceed (nearest rank); 0.0 of nothing."""
    if not values:
        return 0.0
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def figures(asked: Sequence[Question], traffic: Traffic, one_sided: tuple[float, float]) -> dict[str, Any]:
    """What `edgeway demo --json` writes; times in ms, accuracies as shares of the questions sent."""
    results = [traffic.first[question.id] for question in asked if question.id in traffic.first]
    times = [traffic.seconds[question.id] * 1000 for question in asked if question.id in traffic.seconds]
    right = sum(_is_right(traffic.first.get(question.id), question) for question in asked)
    took = traffic.ended - traffic.began
    return {
        "requests": len(asked),
        "answered": len(results),
        "lost": len(asked) - len(results),
        "duplicated": traffic.duplicated,
        "local": sum(_side(result) == "local" for result in results),
        "cloud": sum(_side(result) == "cloud" for result in results),
        "ok": sum(result.status == "ok" for result in results),
        "partial": sum(result.status == "partial" for result in results),
        "errors": sum(result.status == "error" for result in results),
        "p50_ms": round(percentile(times, 0.50), 1),
        "p95_ms": round(percentile(times, 0.95), 1),
        "p99_ms": round(percentile(times, 0.99), 1),
        "throughput_rps": round(len(traffic.first) / took, 1) if took > 0 else 0.0,
        "accuracy_local": round(one_sided[0], 4),
        "accuracy_hybrid": round(right / len(asked), 4) if asked else 0.0,
        "accuracy_cloud": round(one_sided[1], 4),
        "cost": round(sum(result.cost for result in results), 4),
        "examples": len(traffic.sent) - len(asked),
        "examples_ok": sum(
            result.status == "ok"
            for name, result in traffic.first.items()
            if not name.startswith("question-")
        ),
    }


def is_good(shown: dict[str, Any]) -> bool:
    """Whether every request was answered well, once."""
    return bool(
        shown["ok"] == shown["requests"]
        and shown["lost"] == shown["duplicated"] == 0
        and shown["examples_ok"] == shown["examples"]
    )


def _side(result: Result) -> str:
    return next(iter(result.sides.values()), "none")


def _is_right(result: Result | None, question: Question) -> bool:
    return (
        result is not None
        and isinstance(result.output, dict)
        and result.output.get("intent") == question.intent
    )
