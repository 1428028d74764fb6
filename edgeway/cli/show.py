"""Results for people."""

from __future__ import annotations

import json

from edgeway.explain import PLACES, explain
from schemas.messages import Result

_WIDTH = 400


def short(result: Result) -> str:
    """One line: id, status, sides, time, output or error."""
    total = max((timing.total_ms for timing in result.timings.values()), default=0.0)
    sides = "+".join(sorted({*result.sides.values()})) or "-"
    time = f"{total:.0f} ms" if total else "-"
    flags = " approximate" if result.approximate else ""
    what = result.error.message if result.error is not None else _cut(output(result))
    return f"{result.id}  {result.status}{flags}  {sides}  {time}  {what}"


def full(result: Result) -> list[str]:
    """Everything a person wants to know of one result, decisions in plain words."""
    head = f"{result.id}: {result.status}"
    if result.confidence is not None:
        head += f", confidence {result.confidence:.2f}"
    where = ", ".join(f"{step} by {PLACES[side]}" for step, side in result.sides.items())
    lines = [head + (f" ({where})" if where else "")]
    if result.output is not None:
        lines.append(f"  output: {output(result)}")
    if result.claim is not None:
        claim = result.claim
        lines.append(f"  output: {claim.size} bytes of {claim.content_type or 'no type'} at {claim.dataref}")
    lines += [f"  warning: {warning}" for warning in result.warnings]
    return [*lines, *(f"  - {line}" for line in explain(result))]


def output(result: Result) -> str:
    """The output as JSON; bytes as their length."""
    return json.dumps(result.output, ensure_ascii=False, default=lambda value: f"<{len(value)} bytes>")


def _cut(text: str) -> str:
    return text if len(text) <= _WIDTH else text[:_WIDTH] + "..."
