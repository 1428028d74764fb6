"""Which task a request asks for: by name, or by a phrase of the rules found in its query."""

from __future__ import annotations

import difflib
import re
from typing import NamedTuple

from schemas.messages import Failure, Request
from schemas.phrases import CJK, normal
from schemas.rules import Rules, StepRule, TaskRule
from streams.router.direct import direct_tasks, names_side, unknown_capability

MAX_QUERY_CHARS = 10_000
"""Only so much of a query is searched for phrases."""
MAX_NAMED = 10
"""An error names at most so many tasks."""

_CJK_CHAR = re.compile(f"[{CJK}]")


class TaskFound(NamedTuple):
    """A task of the rules by its name, and the steps of this request: the rules', or a decomposer's.

    `foreign` are capabilities of these steps that the rules do not name: only a live worker vouches for them.
    """

    name: str
    rule: TaskRule
    steps: tuple[StepRule, ...]
    foreign: frozenset[str] = frozenset()


class _Phrase(NamedTuple):
    text: str
    task: str


class Lexicon:
    """The tasks and phrases of one version of the rules, prepared for look-up."""

    def __init__(self, rules: Rules) -> None:
        self._tasks = rules.tasks
        self._direct = direct_tasks(rules)
        phrases = [_Phrase(normal(text), name) for name, task in rules.tasks.items() for text in task.phrases]
        # The sort is stable: of phrases equally long the one that stands first in the rules wins.
        self._phrases = sorted(
            (phrase for phrase in phrases if phrase.text), key=lambda phrase: -len(phrase.text)
        )

    def find(self, request: Request) -> TaskFound | Failure:
        """The task of `request`; `task` wins over `query`, the longest phrase over shorter ones. A task that
        the rules lack may be a capability on one side (`cloud/nlp/summarize`).

        A Failure is `unknown_task` or `unknown_capability`, naming the known ones nearest first, or
        `invalid_request` without task and query.
        """
        if request.task:
            rule = self._tasks.get(request.task) or self._direct.get(request.task)
            if rule is not None:
                return TaskFound(request.task, rule, rule.steps)
            if names_side(request.task):
                return unknown_capability(request.task, self._direct)
            return self._unknown(request.task)
        if request.query:
            name = self._by_phrase(request.query)
            if name is None:
                return self._unknown(None)
            rule = self._tasks[name]
            return TaskFound(name, rule, rule.steps)
        return Failure(
            code="invalid_request",
            message="the request names no task; give `task`, or `query` with a phrase of one",
        )

    def steps_of(self, name: str) -> tuple[StepRule, ...]:
        """The steps that the rules have for a task, by the name in its TaskFound."""
        return (self._tasks.get(name) or self._direct[name]).steps

    def _by_phrase(self, query: str) -> str | None:
        text = normal(query[:MAX_QUERY_CHARS])
        for phrase, task in self._phrases:
            if _holds(text, phrase):
                return task
        return None

    def _unknown(self, asked: str | None) -> Failure:
        names = sorted(self._tasks)
        if not names:
            known = "the rules have no tasks"
        else:
            near = difflib.get_close_matches((asked or "")[:64], names, n=MAX_NAMED, cutoff=0.4)
            named = [*near, *(name for name in names if name not in near)][:MAX_NAMED]
            more = f" and {len(names) - len(named)} more" if len(names) > len(named) else ""
            known = f"known tasks: {', '.join(named)}{more}"
        what = (
            "`task` is not in the rules"
            if asked is not None
            else "no phrase of the rules is in `query`; give `task`"
        )
        return Failure(code="unknown_task", message=f"{what}; {known}")


def _holds(text: str, phrase: str) -> bool:
    """Whether `phrase` stands in `text`, not within a longer word."""
    start = text.find(phrase)
    while start >= 0:
        end = start + len(phrase)
        if not (_joins(text[start - 1 : start], phrase[0]) or _joins(phrase[-1], text[end : end + 1])):
            return True
        start = text.find(phrase, start + 1)
    return False


def _joins(left: str, right: str) -> bool:
    """Whether two neighbours are of one word. Chinese characters never are: no spaces part its words."""
    return _is_letter(left) and _is_letter(right)


def _is_letter(char: str) -> bool:
    return char.isalnum() and _CJK_CHAR.match(char) is None
