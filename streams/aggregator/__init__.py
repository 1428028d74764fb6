"""The aggregator: one answer for each request, from the log alone."""

from streams.aggregator.agent import Aggregator
from streams.aggregator.effects import Answer, Effects, Place
from streams.aggregator.errands import Errands
from streams.aggregator.join import Dispatch, Join
from streams.aggregator.limits import Counts, Limits
from streams.aggregator.table import Table

__all__ = [
    "Aggregator",
    "Answer",
    "Counts",
    "Dispatch",
    "Effects",
    "Errands",
    "Join",
    "Limits",
    "Place",
    "Table",
]
