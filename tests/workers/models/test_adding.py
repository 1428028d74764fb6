"""Adding models, and making them ready again by what was recorded."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.models import card, folder_of, scaler
from tests.helpers.shared_data import crayfish
from workers.backends import Row
from workers.errors import CheckFailed, Damaged, LoadError, RepositoryError
from workers.models import ready
from workers.models.adding import Asking, add
from workers.models.check import Asked, Check, Expected, encode_check
from workers.models.opening import open_store
from workers.models.pull import Cache
from workers.models.ready import load, made_ready, within
from workers.models.repository import Repository

DIGITS = {
    "capability": "vision/digits",
    "side": "local",
    "model_type": "onnx",
    "options": {"sources": {"input": "pixels"}, "softmax": True},
    "labels": [f"class {k}" for k in range(10)],
}


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(open_store(str(tmp_path / "repo")))


@pytest.fixture
def cache(tmp_path: Path, repository: Repository) -> Cache:
    return Cache(tmp_path / "cache", repository.store.url)


def test_a_model_file_becomes_a_version_that_is_served_as_recorded(
    repository: Repository, cache: Cache, tmp_path: Path
) -> None:
    done = add(repository, Path(crayfish()), {**DIGITS, "name": "digits", "max_batch": 8})
    assert (done.manifest.name, done.manifest.version) == ("digits", "1")
    assert sorted(done.manifest.files) == sorted(["card.json", "check.json", Path(crayfish()).name])
    assert len(done.check.rows) == 3
    backend = made_ready(cache.pull(repository, "digits", "1"))
    assert (backend.card.model, backend.card.version, backend.card.max_batch) == ("digits", "1", 8)
    (answer,) = backend.infer([Row(done.check.rows[0].inputs, {})])
    assert answer.output["label"] == done.check.answers[0].output["label"]
    assert answer.output["label"].startswith("class ")
    backend.close()


def test_a_folder_is_copied_with_what_the_flags_add(
    repository: Repository, cache: Cache, tmp_path: Path
) -> None:
    folder = folder_of(tmp_path / "scale", 2.0, version="1.2.0", about="doubles")
    (folder / "notes").mkdir()
    (folder / "notes" / "read.me").write_text("more")
    (folder / ".DS_Store").write_text("hidden")
    done = add(repository, folder, {"max_wait_ms": 2.5, "quality": "exact"})
    assert sorted(done.manifest.files) == ["card.json", "check.json", "model.onnx", "notes/read.me"]
    backend = made_ready(cache.pull(repository, "scale", "1.2.0"))
    found = backend.card
    assert (found.licence, found.quality, found.max_wait_ms) == ("Apache-2.0", "exact", 2.5)
    assert found.description == "doubles"
    assert backend.infer([Row({"x": [1, 2, 3, 4]}, {})])[0].output["y"] == [2, 4, 6, 8]
    assert json.loads((folder / "card.json").read_text()) == card(version="1.2.0", about="doubles")


def test_numbers_are_given_where_no_version_is_named(repository: Repository, tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "scale", 2.0)
    versions = [add(repository, folder, {}).manifest.version for _ in range(3)]
    assert versions == ["1", "2", "3"]
    with pytest.raises(RepositoryError, match="scale 2 is there already"):
        add(repository, folder, {"version": "2"})


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no capability": ({"capability": ""}, "has no capability"),
    "a bad capability": ({"capability": "Nlp Intent"}, "Intent"),
    "a bad side": ({"side": "moon"}, "side"),
    "an app's": ({"model_type": "function"}, "functions come from an app"),
    "unknown": ({"model_type": "classifier"}, "'classifier'; a repository holds onnx"),
    "a file elsewhere": ({"options": {"path": "../../model.onnx"}}, "not within the folder"),
    "an absolute file": ({"options": {"path": "/etc/passwd"}}, "not within the folder"),
    "no file": ({"options": {"path": "other.onnx"}}, "'other.onnx', which is not there"),
    "an odd option": ({"options": {"speed": 3}}, "speed"),
    "no options": ({"options": [1]}, "options is no JSON object"),
    "no rows a batch": ({"max_batch": 0}, "max_batch"),
    "calls of less than none": ({"max_qps": -3}, "qps are at least 0"),
    "a text": ({"max_batch": "many"}, "max_batch"),
    "a path": ({"name": "../other"}, "cannot be a folder"),
    "a version out": ({"version": "1/2"}, "cannot be a folder"),
}


@pytest.mark.parametrize(("fields", "told"), REFUSED.values(), ids=REFUSED.keys())
def test_a_card_that_cannot_be_used_is_refused(
    repository: Repository, tmp_path: Path, fields: dict[str, Any], told: str
) -> None:
    with pytest.raises((LoadError, RepositoryError), match=told):
        add(repository, folder_of(tmp_path / "scale", 2.0), fields)
    assert repository.models() == []


def test_what_is_no_model_is_refused(repository: Repository, tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"no model")
    with pytest.raises(LoadError, match="cannot load"):
        add(repository, tmp_path / "model.onnx", card())
    (tmp_path / "empty").mkdir()
    for place in (tmp_path / "empty", tmp_path / "nowhere"):
        with pytest.raises(RepositoryError, match="give a model or its folder"):
            add(repository, place, card())


def test_rows_of_the_owner_are_recorded(repository: Repository, cache: Cache, tmp_path: Path) -> None:
    rows = [Asked({"x": [1, 1, 1, 1]}), Asked({"x": [1]})]
    done = add(repository, folder_of(tmp_path / "scale", 3.0), {}, Asking(rows))
    assert [answer.error for answer in done.check.answers] == [None, "bad_input"]
    assert done.check.answers[0].output == {"y": [3, 3, 3, 3]}
    made_ready(cache.pull(repository, "scale", "1")).close()


def test_a_model_of_free_size_gets_made_up_inputs_too(repository: Repository, tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(scaler(2.0, 7))
    done = add(repository, tmp_path / "m.onnx", card())
    assert [len(row.inputs["x"]) for row in done.check.rows] == [7, 7, 7]


def test_a_remote_model_is_not_asked_unless_its_owner_says_what(
    repository: Repository, cache: Cache, tmp_path: Path
) -> None:
    folder = tmp_path / "chat"
    folder.mkdir()
    about = card("chat", model_type="http", options={"url": "http://127.0.0.1:1/x"}, side="cloud")
    (folder / "card.json").write_text(json.dumps(about))
    assert add(repository, folder, {}).check.rows == ()
    backend = made_ready(cache.pull(repository, "chat", "1"))
    assert backend.card.model_type == "http"
    backend.close()


def test_a_version_that_answers_otherwise_is_refused(
    repository: Repository, cache: Cache, tmp_path: Path
) -> None:
    add(repository, folder_of(tmp_path / "scale", 2.0), {})
    folder = cache.pull(repository, "scale", "1")
    (folder / "model.onnx").write_bytes(scaler(2.1))
    told = r"scale 1 does not answer as when it was added: answers\[0\]\.output\.y\[\d\]: .* was recorded"
    with pytest.raises(CheckFailed, match=told):
        made_ready(folder)
    made_ready(folder, checked=False).close()
    (folder / "check.json").write_bytes(b"{}..")
    with pytest.raises(Damaged, match="check"):
        made_ready(folder)
    (folder / "model.onnx").write_bytes(b"no model")
    (folder / "check.json").unlink()
    with pytest.raises(LoadError, match="cannot load"):
        made_ready(folder)


def test_a_calibration_of_the_card_is_applied(repository: Repository, cache: Cache, tmp_path: Path) -> None:
    flat = {"method": "isotonic", "x": [0.0], "y": [0.25]}
    stated = {"ece": 0.1, "threshold": 0.9, "coverage": 0.5, "accuracy": 1.0, "samples": 10}
    calibration = {"method": "isotonic", "maps": [flat], **stated}
    done = add(repository, Path(crayfish()), {**DIGITS, "name": "digits", "calibration": calibration})
    assert {answer.confidence for answer in done.check.answers} == {0.25}
    backend = made_ready(cache.pull(repository, "digits", "1"))
    assert backend.card.calibrated
    assert backend.card.calibration is not None
    assert backend.card.calibration.samples == 10
    backend.close()


def test_a_model_that_hangs_in_its_check_is_refused(
    repository: Repository, cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(repository, folder_of(tmp_path / "scale", 2.0), {})
    folder = cache.pull(repository, "scale", "1")
    (folder / "check.json").write_bytes(
        encode_check(Check(rows=(Asked({"x": [1] * 4}),), answers=(Expected(1),), deadline_s=0.1))
    )
    monkeypatch.setattr(ready, "run", lambda backend, check: time.sleep(0.5))
    began = time.monotonic()
    with pytest.raises(CheckFailed, match=r"not loaded and checked within 0\.1 s"):
        made_ready(folder)
    assert time.monotonic() - began < 0.4


def test_what_comes_too_late_is_let_go_of() -> None:
    gone: list[int] = []

    def late() -> int:
        time.sleep(0.1)
        return 7

    with pytest.raises(TimeoutError):
        within(0.02, late, gone.append)
    time.sleep(0.2)
    assert gone == [7]
    assert within(5.0, lambda: 3, gone.append) == 3
    with pytest.raises(ZeroDivisionError):
        within(5.0, lambda: 1 // 0, gone.append)


def test_loading_takes_no_threads_that_outlive_it(tmp_path: Path) -> None:
    import threading

    from workers.backends.onnx import OnnxBackend
    from workers.models.offering import card_of

    folder = folder_of(tmp_path / "scale", 2.0, version="1")
    before = threading.active_count()
    backend = OnnxBackend(card_of(card(version="1"), "here"), folder / "model.onnx")
    load(backend)
    assert threading.active_count() <= before
    shutil.rmtree(folder)
    assert backend.infer([Row({"x": [1] * 4}, {})])[0].output["y"] == [2] * 4
