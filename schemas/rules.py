"""The rules file: tasks, their phrases and steps, and what decides where a step runs."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import msgspec

from schemas.errors import RulesError
from schemas.parts import Examination, Side
from schemas.phrases import normal
from schemas.rules_check import check_rules, reply_topics, sides_of
from schemas.rules_file import tasks_of
from schemas.rules_structs import DEFAULT_MERGE, MergeRule, Rules, RulesFile, StepRule, TaskRule, Weights
from schemas.rules_text import RulesText

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
    "normal",
    "parse_rules",
    "sides_of",
]


def parse_rules(raw: bytes, *, in_code: bool = False) -> Rules:
    """The rules in `raw`, a JSON file in either form; templates are filled in. `in_code`: the steps are those
    of one request, and keys of their task may be for others.

    Raises:
        RulesError: it is refused; the message has the JSON path, the line and the mend of the first thing
        wrong in each independent part of the file, and so has `problems`.
    """
    text = RulesText.read(raw, in_code)
    file, tasks = tasks_of(text)
    capabilities = check_rules(text, file, tasks)
    replies = reply_topics(file.reply_topics)
    examination = msgspec.convert(msgspec.to_builtins(file.privacy), Examination)
    more: dict[str, Any] = {
        "decomposers": file.decomposers,
        "hosts": tuple(host.lower() for host in file.hosts),
        "privacy": examination,
        "budget": file.budget,
        "prices": file.prices,
        "tenants": file.tenants,
        "cache_s": file.cache_s,
        "stale_s": file.stale_s,
    }
    if file.merges:
        more["merges"] = file.merges
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
