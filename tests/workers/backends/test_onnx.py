"""The ONNX backend on a real model, and its ready-made tensors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from schemas.cards import Card
from tests.helpers.shared_data import crayfish
from workers.backends import Row, registry
from workers.backends.onnx import OnnxBackend
from workers.backends.tensors import ClassPost, Feed, TensorPost, TensorPre
from workers.errors import BadRows, LoadError

CARD = Card(
    capability="vision/digits", side="local", version="1", model="crayfish", model_type="onnx", max_batch=8
)
PIXELS = np.random.default_rng(7).random((6, 784), dtype=np.float32)


def rows(*values: Any) -> list[Row]:
    return [Row({"pixels": value}, {}) for value in values]


def expected(pixels: Any) -> Any:
    session = onnxruntime.InferenceSession(str(crayfish()), providers=["CPUExecutionProvider"])
    return session.run(None, {"input": np.asarray(pixels, np.float32).reshape(-1, 1, 784)})[0]


@pytest.fixture
async def backend() -> Any:
    made = OnnxBackend(CARD, crayfish(), sources={"input": "pixels"})
    await made.load()
    yield made
    made.close()


async def test_bytes_lists_and_nested_lists_are_the_same_image(backend: OnnxBackend) -> None:
    image = PIXELS[0]
    values = (image.astype("<f4").tobytes(), image.tolist(), image.reshape(28, 28).tolist())
    assert len({backend.kin(row) for row in rows(*values)}) == 1
    for answer in backend.infer(rows(*values)):
        np.testing.assert_allclose(answer.output["output"], expected(image)[0], rtol=1e-5)


async def test_raw_rows_keep_their_order(backend: OnnxBackend) -> None:
    answers = backend.infer(rows(*(image.tobytes() for image in PIXELS)))
    np.testing.assert_allclose([answer.output["output"] for answer in answers], expected(PIXELS), rtol=1e-5)


BAD = {
    "missing": (None, "is missing"),
    "empty bytes": (b"", "0 numbers"),
    "empty list": ([], "0 numbers"),
    "short": (PIXELS[0].tobytes()[:-4], "783 numbers"),
    "torn": (PIXELS[0].tobytes()[:-1], "3135 bytes"),
    "long": ([0.0] * 785, "785 numbers"),
    "text": ("x" * 784, "is a str"),
    "texts": (["1"] * 784, "something else"),
    "bools": ([True] * 784, "something else"),
    "nulls": ([None] * 784, "something else"),
    "ragged": ([[1.0, 2.0], [3.0]], "ragged"),
    "nan": ([float("nan")] * 784, "NaN"),
    "raw nan": (np.full(784, np.nan, "<f4").tobytes(), "NaN"),
    "infinite": (np.full(784, np.inf, "<f4").tobytes(), "infinity"),
    "beyond float32": ([1e300] * 784, "beyond float32"),
    "huge": ([10**400] * 784, "something else"),
    "map": ({"a": 1}, "is a dict"),
}


@pytest.mark.parametrize("name", BAD)
async def test_a_bad_row_fails_alone(backend: OnnxBackend, name: str) -> None:
    value, told = BAD[name]
    first, bad, last = backend.infer(rows(PIXELS[0].tobytes(), value, PIXELS[1].tolist()))
    assert bad.error is not None
    assert bad.error.code == "bad_input"
    assert told in bad.error.message
    np.testing.assert_allclose(
        [first.output["output"], last.output["output"]], expected(PIXELS[:2]), rtol=1e-5
    )


async def test_all_rows_bad(backend: OnnxBackend) -> None:
    assert all(answer.error for answer in backend.infer(rows(None, b"")))


async def test_a_classifier_says_label_and_confidence() -> None:
    labels = [f"class {number}" for number in range(10)]
    options = {"path": crayfish(), "sources": {"input": "pixels"}, "labels": labels, "softmax": True}
    made = registry.build(CARD, options)
    await made.load()
    answers = made.infer(rows(*(image.tobytes() for image in PIXELS)))
    logits = expected(PIXELS)
    for answer, row in zip(answers, logits, strict=True):
        assert answer.output["label"] == labels[int(row.argmax())]
        assert answer.confidence == pytest.approx(max(answer.output["scores"]))
        assert sum(answer.output["scores"]) == pytest.approx(1.0, abs=1e-5)
    made.close()


def test_a_row_whose_answer_is_not_finite_fails_alone() -> None:
    scores = np.array([[0.1, 0.9], [np.nan, 0.2], [0.7, 0.3]], np.float32)
    found = ClassPost(["no", "yes"], scores=False)({"p": scores}, rows(1, 2, 3))
    assert [answer.output for answer in found] == [{"label": "yes"}, None, {"label": "no"}]
    assert found[1].error is not None
    assert found[1].error.code == "bad_output"
    plain = TensorPost()({"p": scores, "n": np.array([1, 2, 3])}, rows(1, 2, 3))
    assert [answer.error is None for answer in plain] == [True, False, True]
    assert plain[0].output["n"] == 1


def test_a_free_dimension_follows_from_the_data_and_separates_kin() -> None:
    pre = TensorPre([Feed("x", "x", (None, 2), "int64")])
    short, long = Row({"x": [[1, 2]]}, {}), Row({"x": [[1, 2], [3, 4]]}, {})
    assert pre.kin(short) != pre.kin(long)
    assert pre.kin(short) == pre.kin(Row({"x": [[5, 6]]}, {}))
    stacked = pre([long, long])["x"]
    assert (stacked.shape, stacked.dtype) == ((2, 2, 2), np.int64)
    with pytest.raises(BadRows) as refused:
        pre([short, Row({"x": [1, 2, 3]}, {})])
    assert list(refused.value.faults) == [1]


@pytest.mark.parametrize("exact", [1, 4, None])
async def test_a_model_of_a_fixed_number_of_rows_takes_fewer_too(tmp_path: Path, exact: int | None) -> None:
    shape = [exact or "rows", 2]
    doubled = helper.make_graph(
        [helper.make_node("Add", ["x", "x"], ["y"])],
        "doubled",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
    )
    model = helper.make_model(doubled, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, tmp_path / "model.onnx")
    most = exact or 4
    made = OnnxBackend(msgspec.structs.replace(CARD, max_batch=most), tmp_path / "model.onnx")
    await made.load()
    for count in range(1, most + 1):
        answers = made.infer([Row({"x": [number, 0.5]}, {}) for number in range(count)])
        assert [answer.output for answer in answers] == [{"y": [2.0 * n, 1.0]} for n in range(count)]
    answers = made.infer([Row({"x": [1]}, {}), Row({"x": [1, 2]}, {})]) if most > 1 else []
    assert [answer.output for answer in answers] in ([], [None, {"y": [2.0, 4.0]}])


async def test_files_that_are_no_model_say_so(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"no model")
    with pytest.raises(LoadError, match=r"cannot load model\.onnx"):
        await OnnxBackend(CARD, tmp_path / "model.onnx").load()
    with pytest.raises(LoadError, match="not loaded"):
        OnnxBackend(CARD, crayfish()).infer(rows(b""))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"sources": {"x": "pixels"}}, "`sources` names x, and the inputs of model.onnx are input"),
        ({"labels": ["a", "b"]}, "the model gives 10 scores, and 2 labels are given"),
        ({"labels": list("abcdefghijk"), "softmax": True}, "10 scores, and 11 labels"),
    ],
)
async def test_options_that_do_not_go_with_the_model_are_told_at_load(
    options: dict[str, Any], told: str
) -> None:
    with pytest.raises(LoadError, match=told):
        await registry.build(CARD, {"path": crayfish(), **options}).load()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"labels": "abc"}, "labels must be a list"),
        ({"labels": {"a": 1}}, "labels must be a list"),
        ({"sources": ["input"]}, "sources must be an object"),
        ({"sources": {"input": 1}}, "sources must be an object"),
        ({"intra_threads": "many"}, "intra_threads must be a whole number"),
        ({"intra_threads": -5}, "intra_threads must be a whole number"),
        ({"device": True}, "device must be a whole number"),
        ({"spinning": "yes"}, "spinning must be true or false"),
        ({"softmax": 1}, "softmax must be true or false"),
        ({"providers": "cuda"}, "providers must be a list"),
        ({"optimisation": 3}, "optimisation must be a text"),
        ({"path": 3}, "path must be a file"),
    ],
)
def test_options_of_another_type_are_named(options: dict[str, Any], told: str) -> None:
    with pytest.raises(LoadError, match=f"the onnx backend's option {told}"):
        registry.build(CARD, {"path": crayfish(), **options})


def test_options_and_kinds_are_checked() -> None:
    assert {"function", "onnx"} <= set(registry.kinds())
    with pytest.raises(LoadError, match="path"):
        registry.build(CARD, {})
    with pytest.raises(LoadError, match="colour"):
        registry.build(CARD, {"path": "x", "colour": 1})
    with pytest.raises(LoadError, match="no backend of kind 'abacus'"):
        registry.build(msgspec.structs.replace(CARD, model_type="abacus"))
