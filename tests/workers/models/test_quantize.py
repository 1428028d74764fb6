"""INT8 copies of real models, by the library and by the command."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from edgeway.cli import main
from tests.helpers.docker import ROOT
from tests.helpers.models import folder_of
from workers.backends import Row
from workers.errors import BadInput, LoadError
from workers.models.evidence import Sample
from workers.models.offering import backend_of
from workers.models.quantize import Method, Wanted, quantized
from workers.models.ready import load

CLASSES, SIZE = 5, 64
FIELDS = {
    "name": "shapes",
    "version": "1",
    "capability": "vision/shapes",
    "side": "local",
    "model_type": "onnx",
    "max_batch": 16,
    "options": {"sources": {"x": "pixels"}, "softmax": True},
    "labels": [f"shape {k}" for k in range(CLASSES)],
}


def prototypes() -> np.ndarray:
    return np.random.default_rng(3).normal(size=(CLASSES, SIZE)).astype(np.float32)


def classifier(path: Path) -> None:
    """Two layers that tell apart noisy copies of the prototypes."""
    weights = prototypes()
    spread = np.random.default_rng(4).normal(size=(SIZE, 128)).astype(np.float32) / 8
    second = np.linalg.pinv(np.maximum(weights @ spread, 0)).astype(np.float32)
    nodes = [
        helper.make_node("MatMul", ["x", "w1"], ["h"]),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("MatMul", ["r", "w2"], ["y"]),
    ]
    rows = ["rows", SIZE]
    graph = helper.make_graph(
        nodes,
        "shapes",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, rows)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["rows", CLASSES])],
        [numpy_helper.from_array(spread, "w1"), numpy_helper.from_array(10 * second, "w2")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, str(path))


def samples(count: int = 120, noise: float = 0.3) -> list[Sample]:
    rng = np.random.default_rng(5)
    given = []
    for k in range(count):
        label = k % CLASSES
        pixels = prototypes()[label] + rng.normal(size=SIZE) * noise
        given.append(Sample({"pixels": pixels.round(4).tolist()}, label=f"shape {label}"))
    return given


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "shapes"
    place.mkdir()
    classifier(place / "model.onnx")
    (place / "card.json").write_text(json.dumps(FIELDS))
    (place / "notes.txt").write_text("comes along")
    return place


@pytest.mark.parametrize("method", ["dynamic", "static"])
def test_the_int8_model_is_smaller_and_measured_against_the_other(
    folder: Path, tmp_path: Path, method: Method
) -> None:
    target = tmp_path / "int8"
    report = quantized(folder, target, "1-int8", Wanted(method, samples()))
    assert report.after.bytes < 0.5 * report.before.bytes
    assert report.before.right.accuracy is not None
    assert report.before.right.accuracy > 0.95
    assert report.after.right.agreement > 0.95
    assert report.allowed == (report.loss <= 0.01)
    assert report.before.speed.single_ms > 0
    assert report.after.speed.rows_per_s > 0
    # A third of the samples calibrates and does not judge.
    assert report.samples == (120 if method == "dynamic" else 84)
    card = json.loads((target / "card.json").read_text())
    assert card["version"] == "1-int8"
    assert card["quantized"]["of"] == "1"
    assert card["quantized"]["after"]["accuracy"] == round(report.after.right.accuracy or 0, 4)
    assert card["quality"].startswith(f"INT8 ({method}) of 1: accuracy ")
    assert (target / "notes.txt").read_text() == "comes along"
    backend = backend_of(target)
    load(backend)
    (answer,) = backend.infer([Row(samples(1)[0].inputs, {})])
    assert answer.output["label"] == "shape 0"


def test_samples_without_labels_tell_of_agreement(folder: Path, tmp_path: Path) -> None:
    unlabelled = [Sample(sample.inputs) for sample in samples(40)]
    report = quantized(folder, tmp_path / "int8", "2", Wanted("dynamic", unlabelled))
    assert report.after.right.accuracy is None
    assert report.loss == pytest.approx(1 - report.after.right.agreement)


def test_the_confidence_is_calibrated_anew(folder: Path, tmp_path: Path) -> None:
    stated = {"method": "none", "ece": 0.1, "threshold": 0.8, "coverage": 0.5, "accuracy": 0.9, "samples": 9}
    (folder / "card.json").write_text(json.dumps({**FIELDS, "calibration": {**stated, "maps": []}}))
    quantized(folder, tmp_path / "int8", "2", Wanted("dynamic", samples(200)))
    found = json.loads((tmp_path / "int8" / "card.json").read_text())["calibration"]
    assert found["samples"] == 200
    assert found["threshold"] == 0.8
    assert found["fitted_on"] == "the samples of its quantization"
    quantized(
        folder, tmp_path / "bare", "3", Wanted("dynamic", [Sample(each.inputs) for each in samples(20)])
    )
    assert "calibration" not in json.loads((tmp_path / "bare" / "card.json").read_text())


def test_what_cannot_be_quantized_is_told(folder: Path, tmp_path: Path) -> None:
    multiplies = folder_of(tmp_path / "scale", 2.0, version="1")
    with pytest.raises(LoadError, match="nothing that dynamic quantization takes"):
        quantized(multiplies, tmp_path / "a", "2", Wanted("dynamic", [Sample({"x": [1.0] * 4})]))
    with pytest.raises(BadInput, match=r"the model refuses every sample: .*pixels is missing"):
        quantized(folder, tmp_path / "b", "2", Wanted("dynamic", [Sample({"image": [1.0]})]))
    with pytest.raises(BadInput, match="no samples are left"):
        quantized(folder, tmp_path / "c", "2", Wanted("static", samples(1)))
    (folder / "card.json").write_text(json.dumps({**FIELDS, "model_type": "openai"}))
    with pytest.raises(LoadError, match="only onnx models"):
        quantized(folder, tmp_path / "d", "2", Wanted("dynamic", samples(3)))


def written(path: Path, given: list[Sample]) -> str:
    lines = [json.dumps({"inputs": each.inputs, "label": each.label}) for each in given]
    path.write_text("\n".join(lines))
    return str(path)


@pytest.fixture
def repository(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    where = ["--models", str(tmp_path / "repo"), "--models-cache", str(tmp_path / "cache")]
    assert main(["models", "add", str(folder), "--activate", *where]) == 0
    capsys.readouterr()
    return where


def report_of(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    return dict(json.loads(capsys.readouterr().out))


def test_the_command_adds_a_version_that_loses_little(
    repository: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = written(tmp_path / "data.jsonl", samples())
    quantize = ["models", "quantize", "shapes", "--data", data, *repository]
    assert main([*quantize, "--max-loss", "0.05", "--activate", "--json"]) == 0
    told = report_of(capsys)
    assert (told["version"], told["added"], told["active"]) == ("1-int8", True, True)
    assert main(["models", "list", *repository, "--json"]) == 0
    assert report_of(capsys)["active"] == "1-int8"
    assert main(["models", "activate", "shapes", "1-int8", *repository]) == 0  # its check passes
    assert main(quantize) == 2
    assert "an INT8 copy itself" in capsys.readouterr().err
    assert main(["models", "quantize", "shapes@1", "--data", data, *repository]) == 2
    assert "is there already" in capsys.readouterr().err


def test_the_command_adds_nothing_that_loses_too_much(
    repository: list[str], folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Noise alone, labelled as the model answers it: the copy answers some of it otherwise.
    backend = backend_of(folder)
    load(backend)
    noise = np.random.default_rng(6).normal(size=(2000, SIZE)).round(3).tolist()
    answers = [backend.infer([Row({"pixels": pixels}, {})])[0] for pixels in noise]
    given = [Sample({"pixels": p}, label=a.output["label"]) for p, a in zip(noise, answers, strict=True)]
    data = written(tmp_path / "data.jsonl", given)
    quantize = ["models", "quantize", "shapes@1", "--data", data, *repository, "--json"]
    code = main([*quantize, "--max-loss", "0"])
    told = report_of(capsys)
    assert 0 < told["loss"] < 0.1
    assert code == 1
    assert not told["added"]
    assert main(["models", "list", *repository, "--json"]) == 0
    assert report_of(capsys)["versions"] == ["1"]


def test_the_commands_of_the_page_run(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```sh int8\n(.*?)```", page, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EDGEWAY_MODELS", "models")
    monkeypatch.setenv("EDGEWAY_MODELS_CACHE", "cache")
    assert main(["models", "add", str(folder), "--name", "damage", "--activate"]) == 0
    written(tmp_path / "held-out.jsonl", samples())
    for line in block.splitlines():
        assert main(shlex.split(line)[1:]) == 0, line
    assert "damage 1-int8 is active, in place of 1" in capsys.readouterr().out


def named(given: list[Sample]) -> list[Sample]:
    """The same, its labels those of another model: of nothing right nothing can be lost."""
    return [Sample(each.inputs, label=f"kind {number}") for number, each in enumerate(given)]


def test_the_command_names_what_it_cannot_read(
    repository: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty.jsonl").write_text("\n")
    for given, said in (
        (["shapes", "--data", str(tmp_path / "empty.jsonl")], "holds no samples"),
        (["shapes", "--data", str(tmp_path / "none.jsonl")], "none.jsonl"),
        (["shapes@7", "--data", written(tmp_path / "d.jsonl", samples(2))], "has no version 7"),
        (["shapez", "--data", str(tmp_path / "d.jsonl")], "no model shapez"),
        (["shapes", "--data", written(tmp_path / "o.jsonl", [Sample({"image": [1.0]})])], "every sample"),
        (["shapes", "--data", written(tmp_path / "s.jsonl", samples(1)), "--method", "static"], "are left"),
        (["shapes", "--data", written(tmp_path / "l.jsonl", named(samples(9)))], "are these its labels"),
    ):
        assert main(["models", "quantize", *given, *repository]) == 2
        assert said in capsys.readouterr().err
