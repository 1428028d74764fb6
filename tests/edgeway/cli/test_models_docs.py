"""The commands of docs/models.md, as they stand there."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from edgeway.cli import main
from schemas.cards import Card
from tests.helpers.docker import ROOT
from tests.helpers.models import scaler
from workers.models.offering import card_of

PAGE = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
CARDS = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
COMMANDS = [line for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()]


def test_the_cards_of_the_page_are_cards() -> None:
    assert len(CARDS) == 2
    for text in CARDS:
        assert isinstance(card_of({**json.loads(text), "version": "1"}, "the page"), Card)


def test_the_commands_of_the_page_do_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EDGEWAY_MODELS_CACHE", str(tmp_path / "cache"))
    (tmp_path / "damage").mkdir()
    (tmp_path / "damage" / "card.json").write_text(CARDS[0])
    (tmp_path / "damage" / "model.onnx").write_bytes(scaler(0.5))
    for command in COMMANDS:
        run(command, monkeypatch)
    said = capsys.readouterr().out
    assert "damage 1 is active\n" in said
    assert "damage 2 is active, in place of 1\n" in said
    assert "damage 1 is active, in place of 2\n" in said
    assert "damage 2: as it was added\n" in said
    assert '"version": "3"' in said
    assert "its check has 1 rows" in said
    assert sorted(path.name for path in (tmp_path / "models" / "damage" / "1").iterdir()) == [
        "card.json",
        "check.json",
        "manifest.json",
        "model.onnx",
    ]


def run(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    words = shlex.split(command)
    if words[0] == "export":
        name, _, value = words[1].partition("=")
        monkeypatch.setenv(name, value)
    elif words[0] == "echo":
        assert words[2] == ">"
        Path(words[3]).write_text(words[1] + "\n")
    else:
        assert words[:2] == ["edgeway", "models"]
        assert main(words[1:]) == 0, command
