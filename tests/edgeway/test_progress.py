"""The progress bar: on a terminal, and nowhere else."""

from __future__ import annotations

import io
import sys

import pytest

from edgeway.progress import bar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("total", "told"), [(3, "3/3"), (None, "3/?")])
def test_on_a_terminal_it_counts(monkeypatch: pytest.MonkeyPatch, total: int | None, told: str) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    with bar("intent", total) as shown:
        for _ in range(3):
            shown.advance()
    assert "intent" in screen.getvalue()
    assert told in screen.getvalue()


def test_elsewhere_and_where_nobody_asked_it_is_silent(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with bar("intent", 3) as shown:
        shown.advance(3)
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    with bar("intent", 3, shown=False) as shown:
        shown.advance(3)
    monkeypatch.setattr(sys, "stderr", None)
    with bar("intent", 3) as shown:
        shown.advance(3)
    said = capsys.readouterr()
    assert (screen.getvalue(), said.out, said.err) == ("", "", "")
