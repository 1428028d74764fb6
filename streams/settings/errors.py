"""Errors of the settings."""

from __future__ import annotations

from collections.abc import Sequence


class SettingsError(ValueError):
    """Settings that cannot be used. Each of `problems` is one line: where, what is wrong, how to mend it."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(problems))
