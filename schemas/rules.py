"""The rules file: tasks, their phrases and steps, and what decides where a step runs."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import msgspec

from schemas.errors import RulesError
from schemas.parts import Examination, Side
from schemas.rules_check import check_tasks, folded, sides_of
from schemas.rules_file import RulesText, tasks_of
from schemas.rules_structs import DEFAULT_MERGE, MergeRule, Rules, RulesFile, StepRule, TaskRule, Weights

__all__ = [
    "DEFAULT_MERGE",
    "MergeRule",
    "Rules",
    "RulesError",
    "RulesFile",
    "StepRule",
    "TaskRule",
    "Weights",
    "capabilities_of",
    "folded",
    "parse_rules",
    "sides_of",
]


def parse_rules(raw: bytes) -> Rules:
    """The rules in `raw`, a JSON file in either form; templates are filled in.

    Raises:
        RulesError: it is refused; the message has the JSON path, the line and the mend.
    """
    text = RulesText.read(raw)
    file, tasks = tasks_of(text)
    capabilities = check_tasks(text, tasks)
    replies = tuple(sorted(text.reply_topics(file.reply_topics)))
    examination = msgspec.convert(msgspec.to_builtins(file.privacy), Examination)
    more: dict[str, Any] = {
        "decomposers": file.decomposers,
        "hosts": file.hosts,
        "privacy": examination,
        "budget": file.budget,
        "prices": file.prices,
        "tenants": file.tenants,
        "cache_s": file.cache_s,
    }
    said = msgspec.json.encode((tasks, replies, more), order="deterministic")
    return Rules(
        version=sha256(said).hexdigest()[:12],
        tasks=tasks,
        reply_topics=replies,
        apps=file.apps,
        capabilities=capabilities,
        **more,
    )


def capabilities_of(rules: Rules) -> tuple[tuple[Side, str], ...]:
    """Every (side, capability) that `rules` can use, sorted; `auto` counts as both sides."""
    return rules.capabilities
