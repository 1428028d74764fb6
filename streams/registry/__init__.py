"""What is alive, how busy it is, and whose breaker is open."""

from streams.registry.breaker import Breaker
from streams.registry.figures import Figures, Gate, Target, View
from streams.registry.intake import observe_records
from streams.registry.registry import BEAT_MS, GONE_MS, SILENT_MS, Registry, slow_limits

__all__ = [
    "BEAT_MS",
    "GONE_MS",
    "SILENT_MS",
    "Breaker",
    "Figures",
    "Gate",
    "Registry",
    "Target",
    "View",
    "observe_records",
    "slow_limits",
]
