"""Which commands take which settings."""

from __future__ import annotations

_ROLE = ("kafka", "rules", "stores", "role", "trace", "objects", "delivery", "log")
GROUPS: dict[str, tuple[str, ...]] = {
    "up": (*_ROLE, "topics", "worker", "models", "data", "joins", "gateway"),
    "router": _ROLE,
    "aggregator": (*_ROLE, "joins"),
    "worker": (*_ROLE, "worker", "models", "http"),
    "gateway": (*_ROLE, "gateway"),
    "topics": ("kafka", "rules", "topics", "log"),
    "check": ("log",),
    "send": ("kafka", "objects", "log"),
    "results": ("kafka", "objects", "log"),
    "audit": ("kafka", "log"),
    "explain": ("kafka", "rules", "log"),
    "feedback": ("kafka", "log"),
    "models": ("kafka", "models", "log"),
    "capabilities": ("kafka", "log"),
    "backtest": ("kafka", "log"),
    "demo": ("log",),
    "render": ("log",),
    "dead-letters": ("kafka", "log"),
    "budget": ("rules", "stores", "log"),
    "broker": ("data", "log"),
}
"""The groups of settings that each command takes as flags."""


def commands_of(group: str) -> tuple[str, ...]:
    """The commands that take the settings of `group`."""
    return tuple(name for name, groups in GROUPS.items() if group in groups)
