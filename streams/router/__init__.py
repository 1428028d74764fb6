"""The router: what a request becomes, where each step runs, and why."""

from streams.router.agent import Router
from streams.router.constraints import CONSTRAINTS, Case, Constraint, Rule
from streams.router.decompose import Lexicon, TaskFound
from streams.router.plan import Ask, Planned, plan

__all__ = [
    "CONSTRAINTS",
    "Ask",
    "Case",
    "Constraint",
    "Lexicon",
    "Planned",
    "Router",
    "Rule",
    "TaskFound",
    "plan",
]
