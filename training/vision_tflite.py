"""TensorFlow Lite graphs as ONNX: the operators that the detectors have, and no others.

Tensors stay in TensorFlow's order (rows, height, width, channels) between operators; around convolutions and
pools they are turned, which the runtime's optimiser takes out again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tflite
from numpy.typing import NDArray

from training.vision_graph import Graph, same

Array = NDArray[Any]
KINDS = {code: name for name, code in vars(tflite.BuiltinOperator).items() if isinstance(code, int)}
TYPES = {tflite.TensorType.FLOAT32: "<f4", tflite.TensorType.FLOAT16: "<f2", tflite.TensorType.INT32: "<i4"}
TO_CHANNELS_FIRST, TO_CHANNELS_LAST = [0, 3, 1, 2], [0, 2, 3, 1]


class Conversion:
    """One graph on its way; `outputs` renames its outputs (`{"Identity": "scores"}`)."""

    def __init__(self, content: bytes, given: str, outputs: Mapping[str, str]) -> None:
        self._model = tflite.Model.GetRootAsModel(content, 0)
        self._lite = self._model.Subgraphs(0)
        self._graph = Graph()
        self._given = given
        self._outputs = outputs
        self._names: dict[int, str] = {}
        self._values: dict[int, Array] = {}
        self._kinds: dict[str, Callable[[Any], str]] = {
            "CONV_2D": lambda op: self._conv(op, tflite.Conv2DOptions(), deep=False),
            "DEPTHWISE_CONV_2D": lambda op: self._conv(op, tflite.DepthwiseConv2DOptions(), deep=True),
            "ADD": lambda op: self._active(
                self._graph.node("Add", self._name(op, 0), self._name(op, 1)),
                self._options(op, tflite.AddOptions()),
            ),
            "RELU": lambda op: self._graph.node("Relu", self._name(op, 0)),
            "CONCATENATION": lambda op: self._graph.node(
                "Concat",
                *(self._name(op, at) for at in range(op.InputsLength())),
                axis=self._options(op, tflite.ConcatenationOptions()).Axis(),
            ),
            "AVERAGE_POOL_2D": lambda op: self._pool(op, "AveragePool"),
            "MAX_POOL_2D": lambda op: self._pool(op, "MaxPool"),
            "PAD": self._pad,
            "RESHAPE": lambda op: self._graph.node(
                "Reshape", self._name(op, 0), self._sizes(self._shape(op.Outputs(0)))
            ),
            "RESIZE_BILINEAR": self._resize,
        }

    def model(self) -> Any:
        """The ONNX model; its batch axis is free.

        Raises:
            SystemExit: an operator that is not known here.
        """
        self._names[int(self._lite.Inputs(0))] = self._given
        for index in range(self._lite.OperatorsLength()):
            op = self._lite.Operators(index)
            kind = KINDS[self._model.OperatorCodes(op.OpcodeIndex()).BuiltinCode()]
            if kind == "DEQUANTIZE":
                self._values[op.Outputs(0)] = self._value(op.Inputs(0)).astype(np.float32)
                continue
            if kind not in self._kinds:
                raise SystemExit(f"operator {kind} is not known here")
            self._names[op.Outputs(0)] = self._kinds[kind](op)
        found = {}
        for at in range(self._lite.OutputsLength()):
            index = int(self._lite.Outputs(at))
            name = self._outputs[self._lite.Tensors(index).Name().decode()]
            found[name] = (self._names[index], ["n", *self._shape(index)[1:]])
        return self._graph.model((self._given, ["n", *self._shape(self._lite.Inputs(0))[1:]]), found)

    def _shape(self, index: int) -> list[int]:
        return [int(size) for size in self._lite.Tensors(int(index)).ShapeAsNumpy()]

    def _value(self, index: int) -> Array:
        if index in self._values:
            return self._values[index]
        tensor = self._lite.Tensors(index)
        raw = self._model.Buffers(tensor.Buffer()).DataAsNumpy()
        return np.frombuffer(raw.tobytes(), TYPES[tensor.Type()]).reshape(self._shape(index))

    def _name(self, op: Any, at: int) -> str:
        index = op.Inputs(at)
        if index not in self._names:
            self._names[index] = self._graph.constant(self._value(index))
        return self._names[index]

    def _options(self, op: Any, options: Any) -> Any:
        table = op.BuiltinOptions()
        options.Init(table.Bytes, table.Pos)
        return options

    def _sizes(self, shape: list[int]) -> str:
        return self._graph.constant(np.array([-1, *shape[1:]], np.int64))

    def _active(self, x: str, options: Any) -> str:
        kind = options.FusedActivationFunction()
        if kind == tflite.ActivationFunctionType.RELU:
            return self._graph.node("Relu", x)
        if kind == tflite.ActivationFunctionType.RELU6:
            return self._graph.clip(x, 0.0, 6.0)
        if kind != tflite.ActivationFunctionType.NONE:
            raise SystemExit(f"activation {kind} is not known here")
        return x

    def _turned(
        self, op: Any, options: Any, kernel: tuple[int, int], dilation: tuple[int, int]
    ) -> tuple[str, Any, Any]:
        """The input with its channels first, and the strides and pads."""
        strides = (options.StrideH(), options.StrideW())
        pads = [0, 0, 0, 0]
        if options.Padding() == tflite.Padding.SAME:
            sizes = self._shape(op.Inputs(0))[1:3]
            ends = [same(*one) for one in zip(sizes, kernel, strides, dilation, strict=True)]
            pads = [ends[0][0], ends[1][0], ends[0][1], ends[1][1]]
        return self._graph.node("Transpose", self._name(op, 0), perm=TO_CHANNELS_FIRST), strides, pads

    def _conv(self, op: Any, options: Any, *, deep: bool) -> str:
        options = self._options(op, options)
        weight = self._value(op.Inputs(1))  # out, height, width, in; of a deep one 1, height, width, out
        weight = weight.transpose(3, 0, 1, 2) if deep else weight.transpose(0, 3, 1, 2)
        dilation = (options.DilationHFactor(), options.DilationWFactor())
        x, strides, pads = self._turned(op, options, weight.shape[2:], dilation)
        out = self._graph.conv(
            x,
            weight,
            self._value(op.Inputs(2)),
            stride=strides,
            pads=pads,
            dilation=dilation,
            groups=weight.shape[0] if deep else 1,
        )
        return self._graph.node("Transpose", self._active(out, options), perm=TO_CHANNELS_LAST)

    def _pool(self, op: Any, kind: str) -> str:
        options = self._options(op, tflite.Pool2DOptions())
        kernel = (options.FilterHeight(), options.FilterWidth())
        x, strides, pads = self._turned(op, options, kernel, (1, 1))
        out = self._graph.node(kind, x, kernel_shape=list(kernel), strides=list(strides), pads=pads)
        return self._graph.node("Transpose", self._active(out, options), perm=TO_CHANNELS_LAST)

    def _pad(self, op: Any) -> str:
        ends = self._value(op.Inputs(1)).T.reshape(-1).astype(np.int64)
        return self._graph.node("Pad", self._name(op, 0), self._graph.constant(ends))

    def _resize(self, op: Any) -> str:
        options = self._options(op, tflite.ResizeBilinearOptions())
        mode = "align_corners" if options.AlignCorners() else "asymmetric"
        x = self._graph.node("Transpose", self._name(op, 0), perm=TO_CHANNELS_FIRST)
        was, now = (self._shape(index)[1:3] for index in (op.Inputs(0), op.Outputs(0)))
        scales = self._graph.constant(np.array([1, 1, now[0] / was[0], now[1] / was[1]], np.float32))
        out = self._graph.node(
            "Resize", x, "", scales, mode="linear", coordinate_transformation_mode=mode, nearest_mode="floor"
        )
        return self._graph.node("Transpose", out, perm=TO_CHANNELS_LAST)
