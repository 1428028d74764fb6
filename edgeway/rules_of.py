"""The rules that the settings name."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import msgspec

from edgeway.errors import UsageError
from schemas.errors import Problem, RulesError
from schemas.rules import Rules, parse_rules
from schemas.rules_text import MAX_RULES_BYTES, RulesText
from streams.settings import Settings


def rules_of(settings: Settings) -> Rules:
    """The rules of `settings.rules`, or the built-in templates alone.

    Raises:
        UsageError: the file cannot be read, or is refused; the text says where and why.
    """
    if settings.rules is None:
        return parse_rules(b"{}")
    try:
        return load_rules(read_rules(settings.rules), settings.rules)
    except RulesError as exc:
        raise UsageError(f"{settings.rules}: {exc}") from exc


def read_rules(path: Path) -> bytes:
    """What the file holds now, as far as it is read.

    Raises:
        UsageError: it cannot be read.
    """
    return _read(path, os.O_RDONLY)


def read_rules_again(path: Path) -> bytes:
    """The same of rules that are followed: from a regular file alone, for a pipe gives its content once, and
    to open one that nobody writes to never ends.

    Raises:
        UsageError: it cannot be read, or is no regular file.
    """
    return _read(path, os.O_RDONLY | os.O_NONBLOCK, regular=True)


def _read(path: Path, flags: int, regular: bool = False) -> bytes:
    try:
        with open(path, "rb", opener=lambda name, _: os.open(name, flags | os.O_CLOEXEC)) as file:
            if regular and not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise UsageError(f"{path} is no regular file; put one in its place")
            return file.read(MAX_RULES_BYTES + 1)
    except OSError as exc:
        raise UsageError(f"{path}: cannot be read: {exc}; name a readable file with --rules") from exc


def load_rules(raw: bytes, path: Path) -> Rules:
    """The rules in `raw`. Files that they name stand beside `path`.

    Raises:
        RulesError: they are refused.
    """
    rules = parse_rules(raw)
    # Not resolved: in a ConfigMap `path` is a link into a folder that the next change takes away.
    folder = path.parent.absolute()
    tasks = {
        name: msgspec.structs.replace(task, predictor=str(folder / task.predictor))
        if task.predictor
        else task
        for name, task in rules.tasks.items()
    }
    code = {key: _beside(getattr(rules, key), folder) for key in ("apps", "decomposers", "merges")}
    return msgspec.structs.replace(rules, tasks=tasks, **code)


def _beside(names: tuple[str, ...], folder: Path) -> tuple[str, ...]:
    return tuple(str(folder / name) if name.endswith(".py") else name for name in names)


def require_merges(rules: Rules, raw: bytes | None = None) -> None:
    """Imports the merge strategies, installed and of the rules. `raw` is the text of `rules`, for lines in
    the error.

    Raises:
        RulesError: with `raw`: a module of strategies cannot be used, or a task asks for a strategy that is
            not there, or for parameters that it does not have.
        UsageError: the same without `raw`.
    """
    from streams.merge.check import wrong_merges
    from streams.merge.own import MergeError
    from streams.merge.registry import installed

    try:
        wrong = wrong_merges(rules, installed(rules.merges))
    except MergeError as error:
        if raw is None:
            raise UsageError(f"rules: {error}") from error
        raise RulesError.of([RulesText.read(raw).problem(("merges",), str(error))]) from error
    if not wrong:
        return
    if raw is None:
        raise UsageError("rules: " + "\n  ".join(map(str, wrong)))
    raise RulesError.of(problems_at(raw, [((each.task, *each.below), each.why) for each in wrong]))


def problems_at(raw: bytes, wrong: list[tuple[tuple[str | int, ...], str]]) -> list[Problem]:
    """Problems of tasks, each given by its task's name, the path below it, and the reason."""
    text = RulesText.read(raw)
    return [text.problem((*text.task_path(str(task)), *below), why) for (task, *below), why in wrong]
