"""Writing ONNX graphs and quantising them; needs the packages of the group `models`."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

Array = NDArray[Any]


class Graph:
    """A graph that is written node by node; tensors go by their names."""

    def __init__(self) -> None:
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._count = 0

    def constant(self, value: Array) -> str:
        """The name of a new initialiser."""
        name = f"c{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """The name of a new node's output."""
        self._count += 1
        name = f"t{self._count}"
        self._nodes.append(helper.make_node(kind, list(inputs), [name], name=f"n{self._count}", **attributes))
        return name

    def conv(
        self,
        x: str,
        weight: Array,
        bias: Array,
        *,
        stride: Sequence[int] = (1, 1),
        pads: Sequence[int] = (0, 0, 0, 0),
        dilation: Sequence[int] = (1, 1),
        groups: int = 1,
    ) -> str:
        """A convolution with its bias; `weight` is out, in / groups, height, width."""
        return self.node(
            "Conv",
            x,
            self.constant(weight.astype(np.float32)),
            self.constant(bias.astype(np.float32)),
            strides=list(stride),
            pads=list(pads),
            dilations=list(dilation),
            group=groups,
        )

    def clip(self, x: str, low: float, high: float) -> str:
        return self.node(
            "Clip", x, self.constant(np.array(low, np.float32)), self.constant(np.array(high, np.float32))
        )

    def model(self, given: tuple[str, Sequence[Any]], found: dict[str, tuple[str, Sequence[Any]]]) -> Any:
        """The model: `given` is the input's name and shape, `found` maps outputs to tensors and shapes."""
        nodes = [
            *self._nodes,
            *(helper.make_node("Identity", [tensor], [name]) for name, (tensor, _) in found.items()),
        ]
        graph = helper.make_graph(
            nodes,
            "edgeway",
            [helper.make_tensor_value_info(given[0], TensorProto.FLOAT, list(given[1]))],
            [
                helper.make_tensor_value_info(name, TensorProto.FLOAT, list(shape))
                for name, (_, shape) in found.items()
            ],
            self._constants,
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.checker.check_model(model)
        return model


def same(size: int, kernel: int, stride: int, dilation: int = 1) -> tuple[int, int]:
    """TensorFlow's `SAME` padding of one axis: before and after, the odd one after."""
    reach = (kernel - 1) * dilation + 1
    total = max((-(-size // stride) - 1) * stride + reach - size, 0)
    return total // 2, total - total // 2


class _Reader(CalibrationDataReader):  # type: ignore[misc]
    def __init__(self, name: str, batches: Sequence[Array]) -> None:
        self._feeds: Iterator[dict[str, Array]] = iter([{name: batch} for batch in batches])

    def get_next(self) -> dict[str, Array] | None:
        return next(self._feeds, None)


def quantised(model: Any, batches: Sequence[Array], leave: Sequence[str] = ()) -> bytes:
    """The model in INT8: weights a channel, activations as seen on `batches`; node kinds `leave` stay."""
    with tempfile.TemporaryDirectory() as folder:
        plain, ready, out = (str(Path(folder) / name) for name in ("plain.onnx", "ready.onnx", "int8.onnx"))
        onnx.save(model, plain)
        quant_pre_process(plain, ready, skip_symbolic_shape=True)
        kept = [node.name for node in onnx.load(ready).graph.node if node.op_type in leave]
        quantize_static(
            ready,
            out,
            _Reader(model.graph.input[0].name, batches),
            quant_format=QuantFormat.QDQ,
            per_channel=True,
            weight_type=QuantType.QInt8,
            activation_type=QuantType.QUInt8,
            nodes_to_exclude=kept,
            # The logits would be rounded to 256 values, and with them the probabilities.
            extra_options={"OpTypesToExcludeOutputQuantization": ["Gemm"]},
        )
        return Path(out).read_bytes()
