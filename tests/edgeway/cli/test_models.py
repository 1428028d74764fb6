"""`edgeway models` and `edgeway feedback` without Kafka."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from edgeway.cli import main
from streams.router.predictor import load_predictor

CARD = {"name": "m", "version": "1", "side": "local", "capability": "nlp/intent", "labels": ["a"]}


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("EDGEWAY_KAFKA", "EDGEWAY_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "card.json").write_text(json.dumps(CARD))


def lines(path: Path, rows: list[dict[str, object]]) -> str:
    path.write_text("".join(json.dumps(said) + "\n" for said in rows))
    return str(path)


def overconfident(count: int = 200) -> list[dict[str, object]]:
    return [{"confidence": 0.92, "right": k % 10 < 7} for k in range(count)]


def test_calibrate_from_a_file_writes_the_card_and_shows_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = lines(tmp_path / "told.jsonl", overconfident())
    assert main(["models", "calibrate", ".", "--from", source, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["written"]
    assert told["before"]["ece"] == pytest.approx(0.22, abs=0.01)
    assert told["after"]["ece"] < 0.08
    card = json.loads((tmp_path / "card.json").read_text())
    assert card["labels"] == ["a"]
    assert card["calibration"]["fitted_on"] == source
    assert main(["models", "show", str(tmp_path)]) == 0
    assert "at 0.9: 0.0% accepted" in capsys.readouterr().out


def test_a_dry_run_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = lines(tmp_path / "told.jsonl", overconfident())
    assert main(["models", "calibrate", "card.json", "--from", source, "--dry-run"]) == 0
    assert json.loads((tmp_path / "card.json").read_text()) == CARD
    said = capsys.readouterr()
    assert "-> " in said.out
    assert "would be written" in said.err


def test_honest_confidences_leave_the_card_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = lines(tmp_path / "told.jsonl", [{"confidence": 0.7, "right": k % 10 < 7} for k in range(200)])
    assert main(["models", "calibrate", ".", "--from", source]) == 0
    assert "stays as it is" in capsys.readouterr().err
    assert json.loads((tmp_path / "card.json").read_text()) == CARD


def test_too_few_samples_say_how_many_are_needed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = lines(tmp_path / "told.jsonl", [*overconfident(20), {"nothing": 1}])
    assert main(["models", "calibrate", ".", "--from", source]) == 2
    said = capsys.readouterr().err
    assert "line 21" in said
    assert "at least 100 are needed" in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere.json", "--from", "x"], "cannot be read"),
        ([".", "--from", "absent.jsonl"], "absent.jsonl"),
        ([".", "--from", "card.json", "--capability", "nlp/other"], "not of nlp/other"),
        ([".", "--from", "card.json", "--threshold", "7"], "--threshold"),
    ],
)
def test_what_cannot_be_calibrated_is_named(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["models", "calibrate", *words]) == 2
    assert message in capsys.readouterr().err


def test_a_card_that_does_not_say_what_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "card.json").write_text("{}")
    assert main(["models", "calibrate", ".", "--from", "card.json"]) == 2
    assert "has no side, capability, name, version" in capsys.readouterr().err


def test_a_predictor_is_trained_from_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    easy = [{"text": f"where is my card number {k}", "accepted": True} for k in range(60)]
    hard = [{"inputs": {"text": f"odd charge abroad {k}"}, "confidence": 0.3} for k in range(60)]
    source = lines(tmp_path / "told.jsonl", [*easy, *hard, {"text": "no outcome"}])
    assert main(["models", "predictor", "--from", source, "--out", "p.npz", "--json"]) == 2
    told = json.loads(capsys.readouterr().out)
    assert (told["examples"], told["bad"]) == (120, 1)
    assert told["auc"] > 0.95
    assert (load_predictor(tmp_path / "p.npz").expected({"text": "where is my card"}) or 0) > 0.5


@pytest.mark.parametrize(
    ("text", "label", "message"),
    [("\u202e\u0000", None, "no text holds a word"), ("words", "l", "labels are too many")],
)
def test_examples_of_which_no_predictor_comes_are_refused(
    text: str,
    label: str | None,
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("streams.router.predictor_fit.SKETCH_BYTES", 640)
    told = [{"text": text, "accepted": n % 2 == 0, "label": label and f"{label}{n}"} for n in range(200)]
    source = lines(tmp_path / "told.jsonl", told)
    assert main(["models", "predictor", "--from", source, "--out", "p.npz"]) == 2
    said = capsys.readouterr().err
    assert "no predictor comes of these requests" in said
    assert message in said


def test_an_example_nested_too_deep_is_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "told.jsonl"
    source.write_text("[" * 3000 + "]" * 3000 + "\n")
    assert main(["models", "predictor", "--from", str(source), "--out", "p.npz"]) == 2
    assert "line 1: it is no JSON" in capsys.readouterr().err


def test_a_predictor_of_one_kind_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = lines(tmp_path / "told.jsonl", [{"text": "a", "accepted": True}] * 80)
    assert main(["models", "predictor", "--from", source, "--out", "p.npz"]) == 2
    assert "50 of each are needed" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "which answer?"),
        (["--id", "a"], "right, wrong, or a score"),
        (["--id", "a", "--score", "2"], "Feedback"),
        (["--id", "a", "--score", "2", "--label", "[" * 3000], "Feedback"),
        (["--id", "a", "--score", "nan"], "JSON"),
        (["--id", "a", "--right", "--file", "x"], "leave out --id, --right"),
        (["--file", "absent.jsonl"], "cannot be read"),
    ],
)
def test_feedback_that_says_nothing_is_refused(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["feedback", *words]) == 2
    assert message in capsys.readouterr().err


def test_feedback_needs_a_broker(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["feedback", "--id", "a", "--right", "--kafka", "127.0.0.1:1"]) == 3
    assert "cannot be reached" in capsys.readouterr().err
