"""The router: what a request becomes, where each step runs, and why."""

from streams.router.agent import Router
from streams.router.constraints import CONSTRAINTS, Case, Constraint, Purse, Rule
from streams.router.decompose import Lexicon, TaskFound
from streams.router.decomposer import Decomposer, decomposer, load_decomposers
from streams.router.errors import DecomposerError, PredictorError
from streams.router.plan import Planned
from streams.router.planner import Considered, Found, Planner
from streams.router.predictor import Predictor

__all__ = [
    "CONSTRAINTS",
    "Case",
    "Considered",
    "Constraint",
    "Decomposer",
    "DecomposerError",
    "Found",
    "Lexicon",
    "Planned",
    "Planner",
    "Predictor",
    "PredictorError",
    "Purse",
    "Router",
    "Rule",
    "TaskFound",
    "decomposer",
    "load_decomposers",
]
