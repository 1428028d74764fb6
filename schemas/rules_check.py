"""What must hold between the parts of a rules file."""

from __future__ import annotations

from collections.abc import Iterable

from schemas.errors import UnknownTopic
from schemas.messages import Side
from schemas.phrases import normal
from schemas.places import Path
from schemas.rules_merges import check_merge
from schemas.rules_money import check_ceilings, check_prices
from schemas.rules_names import check_examination, check_hosts, check_modules, check_privacy, check_url
from schemas.rules_sides import check_sides
from schemas.rules_steps import check_steps
from schemas.rules_structs import RulesFile, StepRule, TaskRule
from schemas.rules_text import RulesText
from schemas.topics import capability_topic, reply_topic

Pairs = tuple[tuple[Side, str], ...]


def check_rules(text: RulesText, file: RulesFile, tasks: dict[str, TaskRule]) -> Pairs:
    """Every (side, capability) of `tasks`, sorted.

    Raises:
        RulesError: the first thing wrong in each task, in each of the file's own keys, and between the
        tasks, where these are sound.
    """
    for name, task in tasks.items():
        with text.part():
            _check_task(text, name, task)
    for check in (_check_replies, check_ceilings, check_modules, check_privacy):
        with text.part():
            check(text, file)
    with text.part():
        check_hosts(text, file.hosts)
    with text.part():
        _check_stale(text, file, tasks)
    with text.part():
        _check_phrases(text, tasks)
    with text.part():
        _check_fallbacks(text, tasks)
    # What follows would take a capability for unknown only because its task was refused.
    text.settle()
    capabilities = _capabilities(text, tasks)
    check_prices(text, file, capabilities)
    return capabilities


def sides_of(step: StepRule) -> tuple[Side, ...]:
    """The sides that a step may run on."""
    return ("local", "cloud") if step.side == "auto" else (step.side,)


def reply_topics(names: Iterable[str]) -> tuple[str, ...]:
    """The reply topics by their whole names, sorted."""
    return tuple(sorted({reply_topic(name) for name in names}))


def _check_task(text: RulesText, name: str, task: TaskRule) -> None:
    path = text.task_path(name)
    if task.weights and not task.weights.latency + task.weights.cost + task.weights.privacy:
        text.refuse((*path, "weights"), "all weights are 0; give at least one above 0")
    check_steps(text, task, path)
    check_sides(text, name, task, path)
    check_merge(text, name, task, path)
    check_url(text, task, path)
    check_examination(text, path, task.detectors, {"ignore": task.ignore})


def _check_replies(text: RulesText, file: RulesFile) -> None:
    for index, name in enumerate(file.reply_topics):
        try:
            reply_topic(name)
        except UnknownTopic as error:
            text.refuse(("reply_topics", index), str(error))


def _check_stale(text: RulesText, file: RulesFile, tasks: dict[str, TaskRule]) -> None:
    if text.in_code:
        return  # the file that has `cache_s` was checked
    said: list[tuple[Path, int | None]] = [(("stale_s",), file.stale_s)]
    said += [((*text.task_path(name), "stale_s"), task.stale_s) for name, task in tasks.items()]
    for path, stale_s in said:
        if stale_s and stale_s <= file.cache_s:
            text.refuse(
                path,
                f"`stale_s` {stale_s} is not above `cache_s` {file.cache_s}: younger ones are given anyway;"
                " give more, or 0 where no old answer may stand in",
            )


def _check_phrases(text: RulesText, tasks: dict[str, TaskRule]) -> None:
    owners: dict[str, str] = {}
    for name, task in tasks.items():
        for index, phrase in enumerate(task.phrases):
            path = (*text.task_path(name), "phrases", index)
            key = normal(phrase)
            if not key:
                text.refuse(path, "a phrase of spaces fits every query; write words")
            owner = owners.setdefault(key, name)
            if owner != name:
                text.refuse(
                    path,
                    f"the phrase {phrase!r} also belongs to the task {owner!r}; keep it in one of them"
                    ' (a built-in task is changed by naming it, or left out by "builtin": false)',
                )


def _check_fallbacks(text: RulesText, tasks: dict[str, TaskRule]) -> None:
    """One capability has one service in the cloud: subtasks do not say which task they are of."""
    owners: dict[str, tuple[str, TaskRule]] = {}
    for name, task in tasks.items():
        for step in task.steps:
            if task.fallback_url is None or step.side == "local":
                continue
            owner, other = owners.setdefault(step.capability, (name, task))
            for key, what in (("fallback_url", "another URL"), ("fallback_headers", "other headers")):
                if getattr(other, key) != getattr(task, key):
                    text.refuse(
                        (*text.task_path(name), key),
                        f"the task {owner!r} has {what} for the same capability {step.capability!r};"
                        " give the same, or another `capability`",
                    )


def _capabilities(text: RulesText, tasks: dict[str, TaskRule]) -> Pairs:
    places: dict[tuple[Side, str], Path] = {}
    for name, task in tasks.items():
        for index, step in enumerate(task.steps):
            path = text.step_path(name, index)
            for side in sides_of(step):
                places.setdefault((side, step.capability), path)
                for number, other in enumerate(step.alternatives):
                    places.setdefault((side, other), (*path, "alternatives", number))
    _check_topics(text, places)
    return tuple(sorted(places))


def _check_topics(text: RulesText, places: dict[tuple[Side, str], Path]) -> None:
    seen: dict[str, str] = {}
    for (side, capability), path in places.items():
        own, _, rest = capability.partition("/")
        if own in ("local", "cloud") and rest:
            text.refuse(
                path,
                f'the capability {capability!r} begins with a side; write "capability": "{rest}" and '
                f'"side": "{own}"',
            )
        try:
            topic = capability_topic(side, capability)
        except UnknownTopic as error:
            text.refuse(path, f"{error}; set `capability`")
        # Kafka names its metrics with _ for each dot and refuses a second topic of the same metric name.
        other = seen.setdefault(topic.replace("_", "."), capability)
        if other != capability:
            text.refuse(
                path,
                f"the capabilities {capability!r} and {other!r} make topics that Kafka cannot tell apart",
            )
