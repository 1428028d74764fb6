"""The ONNX graph of an intent model: counts in, calibrated probabilities out. Needs the `onnx` package."""

from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

Floats = NDArray[np.float32]


class _Layers:
    """Collects nodes and constants; every method returns the name of the tensor it makes."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def constant(self, name: str, value: NDArray[Any]) -> str:
        self.constants.append(numpy_helper.from_array(value, name))
        return name

    def node(self, op: str, inputs: list[str], output: str, **attributes: int) -> str:
        self.nodes.append(helper.make_node(op, inputs, [output], output, None, None, None, **attributes))
        return output

    def weight(self, name: str, value: Floats) -> str:
        """int8 with one scale a column; both steps are constants, so the runtime folds them at load."""
        scale = np.maximum(np.abs(value).max(axis=0), 1e-12).astype(np.float32) / np.float32(127)
        stored = self.constant(f"{name}_int8", np.round(value / scale).astype(np.int8))
        cast = self.node("Cast", [stored], f"{name}_cast", to=TensorProto.FLOAT)
        return self.node("Mul", [cast, self.constant(f"{name}_scale", scale)], name)

    def dense(self, name: str, source: str, weight: Floats, bias: Floats) -> str:
        product = self.node("MatMul", [source, self.weight(f"{name}_w", weight)], f"{name}_product")
        return self.node("Add", [product, self.constant(f"{name}_b", bias)], name)


def build(name: str, idf: Floats, weights: list[Floats], temperature: float, labels: int) -> onnx.ModelProto:
    """`features` float32 [batch, dim] -> `probabilities` float32 [batch, labels], opset 18.

    (sign(c) + ln(max(c, 1))) * idf, row to length 1, one or two dense layers, logits / temperature, softmax.
    """
    g = _Layers()
    one, tiny = g.constant("one", np.array([1], np.float32)), g.constant("tiny", np.array([1e-6], np.float32))
    axis = g.constant("row", np.array([1], np.int64))
    log = g.node("Log", [g.node("Max", ["features", one], "at_least_one")], "log_count")
    tf = g.node("Add", [g.node("Sign", ["features"], "present"), log], "tf")
    weighted = g.node("Mul", [tf, g.constant("idf", idf)], "tf_idf")
    length = g.node("ReduceL2", [weighted, axis], "length", keepdims=1)
    x = g.node("Div", [weighted, g.node("Max", [length, tiny], "safe_length")], "unit")
    if len(weights) == 4:
        x = g.node("Relu", [g.dense("hidden", x, weights[0], weights[1])], "active")
    cool = np.float32(1 / temperature)
    scores = g.dense("logits", x, weights[-2] * cool, weights[-1] * cool)
    g.node("Softmax", [scores], "probabilities", axis=1)
    source = helper.make_tensor_value_info("features", TensorProto.FLOAT, ["batch", len(idf)])
    target = helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["batch", labels])
    graph = helper.make_graph(g.nodes, name, [source], [target], g.constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    return model
