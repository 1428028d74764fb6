"""The ONNX graph of an intent model: counts in, calibrated probabilities out. Needs the `onnx` package."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from .training import Net

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

    def cut(self, name: str, begin: int, end: int) -> str:
        """Columns from `begin` to before `end` of the features."""
        edges = [
            self.constant(f"{name}_{k}", np.array([v], np.int64)) for k, v in (("from", begin), ("to", end))
        ]
        return self.node("Slice", ["features", *edges, "row"], name)

    def weight(self, name: str, value: Floats) -> str:
        """int8 with one scale a column; both steps are constants, so the runtime folds them at load."""
        scale = np.maximum(np.abs(value).max(axis=0), 1e-12).astype(np.float32) / np.float32(127)
        stored = self.constant(f"{name}_int8", np.round(value / scale).astype(np.int8))
        cast = self.node("Cast", [stored], f"{name}_cast", to=TensorProto.FLOAT)
        return self.node("Mul", [cast, self.constant(f"{name}_scale", scale)], name)

    def dense(self, name: str, source: str, weight: Floats, bias: Floats) -> str:
        product = self.node("MatMul", [source, self.weight(f"{name}_w", weight)], f"{name}_product")
        return self.node("Add", [product, self.constant(f"{name}_b", bias)], name)


class Block(NamedTuple):
    """What one feature spec feeds: its idf [dim] and its networks' averaged into one."""

    idf: Floats
    net: Net


def build(name: str, blocks: Sequence[Block], temperature: float, labels: int) -> onnx.ModelProto:
    """`features` float32 [batch, sum of dims] -> `probabilities` float32 [batch, labels], opset 18.

    In each block (sign(c) + ln(max(c, 1))) * idf, row to length 1, two dense layers; then the average of the
    blocks' logits / temperature, softmax.
    """
    g = _Layers()
    g.constant("one", np.array([1], np.float32))
    g.constant("tiny", np.array([1e-6], np.float32))
    g.constant("row", np.array([1], np.int64))
    cool, begin, parts = np.float32(1 / temperature / len(blocks)), 0, []
    for number, block in enumerate(blocks):
        dim, net = len(block.idf), block.net
        source = "features" if len(blocks) == 1 else g.cut(f"block{number}", begin, begin + dim)
        x = _weighed(g, source, block.idf, f"b{number}_")
        active = g.node("Relu", [g.dense(f"hidden{number}", x, net.first, net.bias)], f"active{number}")
        parts.append(g.dense(f"logits{number}", active, net.second * cool, net.last * cool))
        begin += dim
    g.node("Softmax", [g.node("Sum", parts, "logits")], "probabilities", axis=1)
    source_info = helper.make_tensor_value_info("features", TensorProto.FLOAT, ["batch", begin])
    target = helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["batch", labels])
    graph = helper.make_graph(g.nodes, name, [source_info], [target], g.constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    return model


def _weighed(g: _Layers, source: str, idf: Floats, mark: str) -> str:
    log = g.node("Log", [g.node("Max", [source, "one"], mark + "at_least_one")], mark + "log_count")
    tf = g.node("Add", [g.node("Sign", [source], mark + "present"), log], mark + "tf")
    weighted = g.node("Mul", [tf, g.constant(mark + "idf", idf)], mark + "tf_idf")
    length = g.node("ReduceL2", [weighted, "row"], mark + "length", keepdims=1)
    return g.node("Div", [weighted, g.node("Max", [length, "tiny"], mark + "safe_length")], mark + "unit")
