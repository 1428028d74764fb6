"""`edgeway models` on a repository."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from edgeway.cli import main
from tests.helpers.models import folder_of, scaler

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EDGEWAY_CONFIG", raising=False)
    monkeypatch.setenv("EDGEWAY_MODELS", str(tmp_path / "repo"))
    monkeypatch.setenv("EDGEWAY_MODELS_CACHE", str(tmp_path / "cache"))

    def command(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main(["models", *words])
        said = capsys.readouterr()
        return code, said.out, said.err

    return command


@pytest.fixture
def model(tmp_path: Path) -> str:
    return str(folder_of(tmp_path / "scale", 2.0))


def loads(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


def test_a_model_is_added_activated_and_rolled_back(run: Run, model: str, tmp_path: Path) -> None:
    code, out, err = run("add", model)
    assert code == 0
    assert out.startswith("scale 1 (local/test/scale): 3 files, ")
    assert "edgeway models activate scale 1" in err
    code, out, _ = run("add", model, "--set", "quality=doubles exactly", "--set", "max_batch=4", "--json")
    (told,) = loads(out)
    assert (told["version"], told["checked_rows"], told["active"]) == ("2", 3, False)
    assert run("activate", "scale", "1")[1] == "scale 1 is active\n"
    assert run("activate", "scale")[1] == "scale 2 is active, in place of 1\n"
    assert run("list")[1] == "scale  local/test/scale  active 2  versions: 1 2*\n"
    (listed,) = loads(run("list", "--json")[1])
    assert (listed["active"], listed["previous"], listed["problem"]) == ("2", ["1"], None)
    (card,) = loads(run("export-card", "scale")[1])
    assert (card["model"], card["version"], card["quality"]) == ("scale", "2", "doubles exactly")
    assert card["max_batch"] == 4
    assert run("rollback", "scale")[1] == "scale 1 is active, in place of 2\n"
    code, _, err = run("rollback", "scale")
    assert code == 2
    assert "there is none before 1" in err
    assert run("verify")[:2] == (0, "scale 1: as it was added\nscale 2: as it was added\n")


def test_show_tells_of_a_version_and_still_of_a_card_file(run: Run, model: str) -> None:
    run("add", model, "--activate")
    code, out, _ = run("show", "scale")
    assert code == 0
    assert "scale 1 (local/test/scale)" in out
    assert "licence: Apache-2.0" in out
    assert "model.onnx" in out
    (told,) = loads(run("show", "scale@1", "--json")[1])
    assert told["active"] is True
    assert told["files"]["model.onnx"]["bytes"] == len(scaler(2.0))
    assert run("show", model)[1].splitlines() == [
        "scale None (local/test/scale)",
        "  licence: Apache-2.0",
        "  confidence not calibrated",
    ]
    code, _, err = run("show", "scale@7")
    assert (code, "scale has no version 7, but 1" in err) == (2, True)
    code, _, err = run("show", "other")
    assert (code, "there is no model other" in err) == (2, True)


def test_a_version_that_was_damaged_is_not_activated(run: Run, model: str, tmp_path: Path) -> None:
    run("add", model, "--activate")
    run("add", model)
    place = tmp_path / "repo" / "scale" / "2"
    (place / "model.onnx").write_bytes(scaler(3.0))
    code, _, err = run("activate", "scale", "2")
    assert (code, "model.onnx is not what was added" in err) == (1, True)
    code, out, _ = run("verify", "scale@2", "--json")
    assert (code, loads(out)[0]["ok"]) == (1, False)
    run("verify", "scale@1")
    (place / "model.onnx").unlink()
    code, _, err = run("activate", "scale", "2")
    assert (code, "model.onnx is missing" in err) == (1, True)
    assert loads(run("list", "--json")[1])[0]["active"] == "1"
    code, out, err = run("activate", "scale", "2", "--unchecked")
    assert (code, "active.json says so" in err) == (0, True)
    assert json.loads((tmp_path / "repo" / "scale" / "active.json").read_text())["unchecked"] is True
    assert "(unchecked)" in run("list")[1]


def test_a_version_that_answers_otherwise_is_not_activated(
    run: Run, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from workers.models import ready
    from workers.models.check import Asked, Check, Expected

    run("add", model)
    check = Check(rows=(Asked({"x": [1] * 4}),), answers=(Expected({"y": [0.0] * 4}),))
    monkeypatch.setattr(ready, "check_of", lambda folder: check)
    code, _, err = run("activate", "scale", "1")
    assert code == 1
    assert "scale 1 does not answer as when it was added: answers[0].output.y[0]: 2 where 0" in err


def test_inputs_of_a_file_are_recorded(run: Run, model: str, tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text('{"inputs": {"x": [1, 2, 3, 4]}}\n\n{"inputs": {"x": [0, 0, 0, 0]}, "params": {}}\n')
    (told,) = loads(run("add", model, "--check", str(file), "--tolerance", "0.5", "--json")[1])
    assert told["checked_rows"] == 2
    check = json.loads((tmp_path / "repo" / "scale" / "1" / "check.json").read_text())
    assert check["answers"][0]["output"] == {"y": [2, 4, 6, 8]}
    assert check["tolerance"]["abs"] == 0.5
    file.write_text('{"inputs": 3}\n')
    code, _, err = run("add", model, "--check", str(file))
    assert (code, "rows.jsonl, line 1" in err) == (2, True)
    file.write_text("")
    code, _, err = run("add", model, "--check", str(file))
    assert (code, "holds no inputs" in err) == (2, True)


def test_prune_says_what_goes(run: Run, model: str) -> None:
    for _ in range(5):
        run("add", model, "--activate")
    out = run("prune", "--dry-run")[1]
    assert out.splitlines()[0].startswith("scale 1: would be removed, ")
    assert len(loads(run("prune", "--json")[1])) == 2
    assert run("list")[1] == "scale  local/test/scale  active 5  versions: 3 4 5*\n"


WRONG = {
    "no pair": (("add", "scale", "--set", "x"), "no KEY=VALUE"),
    "no side": (("add", "scale", "--capability", "scale"), "no local/NAME or cloud/NAME"),
    "nowhere": (("add", "nowhere"), "give a model or its folder"),
    "no model": (("activate", "scale"), "there is no model scale"),
    "a path": (("activate", "../scale", "1"), "cannot be a folder"),
    "a URL of nothing": (("list", "--models", "s3://"), "names no place"),
    "a URL of nobody": (("list", "--models", "odd://a/b"), "Protocol not known"),
}


@pytest.mark.parametrize(("words", "told"), WRONG.values(), ids=WRONG.keys())
def test_what_cannot_be_done_is_told(run: Run, model: str, words: tuple[str, ...], told: str) -> None:
    code, _, err = run(*words)
    assert (code, told in err) == (2, True), err


def test_without_a_repository_its_name_is_asked_for(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EDGEWAY_MODELS")
    code, _, err = run("list")
    assert (code, "name one with --models" in err) == (2, True)


def test_a_version_of_a_repository_is_not_calibrated_in_its_place(
    run: Run, model: str, tmp_path: Path
) -> None:
    run("add", model)
    code, _, err = run("calibrate", str(tmp_path / "repo" / "scale" / "1"), "--from", "x")
    assert (code, "add it as a new version" in err) == (2, True)


def test_a_model_of_another_name_is_told_which_there_are(run: Run, model: str) -> None:
    assert run("add", model)[0] == 0
    for words in (("activate", "scal", "1"), ("activate", "scal")):
        code, _, err = run(*words)
        assert code == 2
        assert "there is no model scal in" in err
        assert "there are scale" in err


def test_a_model_elsewhere_is_added_without_asking_it(run: Run, tmp_path: Path) -> None:
    (tmp_path / "chat").mkdir()
    options = {"url": "http://127.0.0.1:1/v1", "key_env": "A_KEY_THAT_IS_NOT_SET"}
    card = {"capability": "nlp/say", "side": "cloud", "model_type": "openai", "options": options}
    (tmp_path / "chat" / "card.json").write_text(json.dumps(card))
    code, _, err = run("add", str(tmp_path / "chat"))
    assert code == 0
    assert "nobody asks it before the workers do" in err
    assert run("activate", "chat")[1] == "chat 1 is active\n"


def test_two_active_models_of_one_capability_are_refused(run: Run, model: str, tmp_path: Path) -> None:
    """No worker could start any more."""
    assert run("add", model, "--activate")[0] == 0
    assert run("add", model, "--name", "twin")[0] == 0
    code, _, err = run("activate", "twin")
    assert code == 2
    assert "local/test/scale is served by model scale already" in err
    assert run("activate", "twin", "--unchecked")[0] == 2
    assert run("add", model, "--name", "twin", "--activate")[0] == 2
    assert run("add", model, "--name", "other", "--capability", "local/test/other", "--activate")[0] == 0
    assert run("activate", "scale")[0] == 0
    (tmp_path / "repo" / "scale" / "active.json").unlink()
    assert run("activate", "twin")[0] == 0
