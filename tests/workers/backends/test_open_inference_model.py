"""What a server tells of a model, and what options make of it; what cannot be is refused at load."""

from __future__ import annotations

from typing import Any

import pytest

from workers.backends.open_inference_model import Model, Told, Wanted, plan
from workers.backends.open_inference_rows import Port
from workers.errors import LoadError

IMAGE = Told("input", "FP32", (-1, 1, 784))
MASK = Told("mask", "BOOL", (-1, 4))
LOGITS = Told("logits", "FP32", (-1, 10))


def model(*inputs: Told, outputs: tuple[Told, ...] = (LOGITS,)) -> Model:
    return Model("triton 2.60", ("binary_tensor_data",), inputs, outputs)


def wanted(inputs: dict[str, Any] | None = None, **others: Any) -> Wanted:
    return Wanted(inputs or {}, **{"outputs": (), "batched": True, "max_batch": 32, **others})


def test_without_options_every_tensor_has_an_input_of_its_name() -> None:
    found = plan(model(IMAGE, MASK), wanted())
    assert found.ports == (Port("input", "input", "FP32", (1, 784)), Port("mask", "mask", "BOOL", (4,)))
    assert found.most_rows == 32
    assert found.outputs == ()


def test_options_name_sources_and_narrow_shapes() -> None:
    found = plan(model(Told("ids", "INT64", (-1, -1))), wanted({"tokens": {"name": "ids", "shape": [128]}}))
    assert found.ports == (Port("ids", "tokens", "INT64", (128,)),)
    assert plan(model(IMAGE), wanted({"pixels": "input"})).ports[0].source == "pixels"


def test_a_server_that_tells_nothing_is_believed_to_take_what_the_options_say() -> None:
    given = {"pixels": {"name": "x", "datatype": "FP16", "shape": [3, -1]}}
    assert plan(model(outputs=()), wanted(given)).ports == (Port("x", "pixels", "FP16", (3, None)),)


def test_a_batch_of_exactly_one_is_asked_row_by_row() -> None:
    assert plan(model(Told("x", "FP32", (1, 3))), wanted()).most_rows == 1


def test_a_model_without_a_batch_axis_is_asked_row_by_row_with_its_whole_shape() -> None:
    found = plan(model(Told("x", "FP32", (16, -1))), wanted(batched=False))
    assert found.ports == (Port("x", "x", "FP32", (16, None)),)
    assert found.most_rows == 1


def test_an_input_may_be_left_out_if_that_is_said() -> None:
    assert len(plan(model(IMAGE, MASK), wanted({"input": "input", "mask": None})).ports) == 1


@pytest.mark.parametrize(
    ("offered", "options", "told"),
    [
        (model(), wanted(), "does not tell the model's inputs"),
        (model(), wanted({"a": "b"}), "needs datatype and shape"),
        (
            model(IMAGE),
            wanted({"pixels": "image"}),
            r"no input 'image'; its inputs are input FP32\[-1, 1, 784\]",
        ),
        (model(IMAGE, MASK), wanted({"pixels": "input"}), "nothing goes to the model's 'mask'"),
        (model(IMAGE), wanted({"a": "input", "b": "input"}), "two inputs go to one tensor"),
        (model(IMAGE), wanted({"a": {"name": "input", "datatype": "FP16"}}), "not what the server tells"),
        (model(IMAGE), wanted({"a": {"name": "input", "shape": [28, 28]}}), "not what the server tells"),
        (model(IMAGE), wanted({"a": {"name": "input", "shape": "784"}}), "no list of whole numbers"),
        (model(IMAGE), wanted({"a": {"name": "input", "size": 3}}), "name, datatype and shape"),
        (model(IMAGE), wanted({"a": 5}), "name, datatype and shape"),
        (model(Told("x", "FP128", (-1, 2))), wanted(), "no|FP128; the protocol has"),
        (model(Told("x", "FP32", (16, 2))), wanted(), '"batched": false'),
        (model(Told("x", "FP32", ())), wanted(), '"batched": false'),
        (model(IMAGE), wanted(outputs=("probs",)), "no output 'probs'; its outputs are logits"),
    ],
)
def test_what_cannot_be_is_told(offered: Model, options: Wanted, told: str) -> None:
    with pytest.raises(LoadError, match=told):
        plan(offered, options)
