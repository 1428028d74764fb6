"""An ONNX transformer of random weights, of the size of a small sentence encoder. It is built, not stored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

LAYERS, WIDTH, HEADS, WORDS, LENGTH = 6, 384, 12, 30_522, 64
"""As MiniLM-L6; LENGTH tokens a row."""


class _Graph:
    """Nodes and weights as they are added."""

    def __init__(self, seed: int) -> None:
        self.nodes: list[Any] = []
        self.weights: list[Any] = []
        self._random = np.random.default_rng(seed)

    def weight(self, name: str, *shape: int) -> str:
        values = (self._random.standard_normal(shape) * 0.02).astype(np.float32)
        return self.constant(name, values)

    def constant(self, name: str, values: Any) -> str:
        self.weights.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def node(self, kind: str, inputs: list[str], name: str, **more: Any) -> str:
        self.nodes.append(helper.make_node(kind, inputs, [name], **more))
        return name

    def linear(self, x: str, name: str, rows: int, columns: int) -> str:
        product = self.node("MatMul", [x, self.weight(f"{name}.w", rows, columns)], f"{name}.product")
        return self.node("Add", [product, self.weight(f"{name}.b", columns)], name)

    def norm(self, x: str, y: str, name: str) -> str:
        total = self.node("Add", [x, y], f"{name}.sum")
        return self.node("LayerNormalization", [total, "ones", "zeros"], name, axis=-1)

    def attention(self, x: str, at: str) -> str:
        heads = {}
        for part in "qkv":
            split = self.node(
                "Reshape", [self.linear(x, f"{at}.{part}", WIDTH, WIDTH), "split"], f"{at}.{part}s"
            )
            turn = [0, 2, 3, 1] if part == "k" else [0, 2, 1, 3]
            heads[part] = self.node("Transpose", [split], f"{at}.{part}t", perm=turn)
        scores = self.node(
            "Mul", [self.node("MatMul", [heads["q"], heads["k"]], f"{at}.qk"), "scale"], f"{at}.scaled"
        )
        mixed = self.node(
            "MatMul", [self.node("Softmax", [scores], f"{at}.soft", axis=-1), heads["v"]], f"{at}.mixed"
        )
        merged = self.node(
            "Reshape",
            [self.node("Transpose", [mixed], f"{at}.turned", perm=[0, 2, 1, 3]), "merge"],
            f"{at}.merged",
        )
        return self.linear(merged, f"{at}.o", WIDTH, WIDTH)


def build(path: Path, *, layers: int = LAYERS, seed: int = 7) -> None:
    """Write the model: `ids` int64[n, LENGTH] to `embedding` float32[n, WIDTH], the mean over the tokens."""
    graph = _Graph(seed)
    graph.constant("split", np.array([0, 0, HEADS, WIDTH // HEADS], np.int64))
    graph.constant("merge", np.array([0, 0, WIDTH], np.int64))
    graph.constant("scale", np.array((WIDTH // HEADS) ** -0.5, np.float32))
    graph.constant("ones", np.ones(WIDTH, np.float32))
    graph.constant("zeros", np.zeros(WIDTH, np.float32))
    graph.constant("tokens", np.array([1], np.int64))
    x = graph.node("Gather", [graph.weight("words", WORDS, WIDTH), "ids"], "embedded")
    for number in range(layers):
        at = f"layer{number}"
        x = graph.norm(x, graph.attention(x, at), f"{at}.norm1")
        wide = graph.node("Gelu", [graph.linear(x, f"{at}.up", WIDTH, 4 * WIDTH)], f"{at}.gelu")
        x = graph.norm(x, graph.linear(wide, f"{at}.down", 4 * WIDTH, WIDTH), f"{at}.norm2")
    graph.node("ReduceMean", [x, "tokens"], "embedding", keepdims=0)
    ids = helper.make_tensor_value_info("ids", TensorProto.INT64, ["n", LENGTH])
    embedding = helper.make_tensor_value_info("embedding", TensorProto.FLOAT, ["n", WIDTH])
    made = helper.make_graph(graph.nodes, "transformer", [ids], [embedding], graph.weights)
    onnx.save(helper.make_model(made, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), path)
