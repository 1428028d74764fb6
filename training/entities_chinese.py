"""Writes the Chinese entity tagger of `nlp/entities`: `python -m training.entities_chinese`.

The network is LAC's small one (Jiao, Sun and Sun 2018; Baidu, Apache-2.0), two layers of bidirectional GRUs
over characters and a CRF of 57 tags, as the package jieba 0.42.1 (MIT) carries its weights. Here they become
an ONNX graph and a table of characters, in 8 bits. Needs `onnx` and `jieba` (dependency group `models`).
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto

from training.entities import tell
from training.vision_graph import Graph
from workers.library.nlp.names import MODELS

Floats = NDArray[np.float32]
FOLDER: Final = MODELS / "entities-zh" / "1"
_WIDTH: Final = 128
_HALF: Final = 4000
_TAGS: Final = 57


def _lac() -> Path:
    spec = find_spec("jieba")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("this needs jieba 0.42.1: pip install jieba==0.42.1")
    return Path(spec.submodule_search_locations[0]) / "lac_small"


def _weights(name: str, *shape: int) -> Floats:
    """PaddlePaddle's file: a header, then the numbers."""
    size = 4 * int(np.prod(shape))
    return np.frombuffer((_lac() / "model_baseline" / name).read_bytes()[-size:], np.float32).reshape(shape)


def _pairs(name: str) -> list[tuple[int, str]]:
    lines = (_lac() / name).read_text("utf-8").split("\n")
    parts = [line.split("\t") for line in lines]
    return [(int(part[0]), part[1]) for part in parts if len(part) == 2]


def _small(table: Floats) -> tuple[NDArray[np.int8], Floats]:
    """In bytes, and the step of each row."""
    steps = np.maximum(np.abs(table).max(axis=1, keepdims=True), 1e-8) / 127
    return np.round(table / steps).astype(np.int8), steps.astype(np.float32)


def _constant(graph: Graph, table: Floats, shape: tuple[int, ...]) -> str:
    """A table kept in bytes; the runtime computes it once, when the graph is loaded."""
    small, steps = _small(table)
    wide = graph.node("Cast", graph.constant(small), to=TensorProto.FLOAT)
    whole = graph.node("Mul", wide, graph.constant(steps))
    return graph.node("Reshape", whole, graph.constant(np.array(shape, np.int64)))


def _gates(into: Floats, state: Floats, bias: Floats) -> tuple[Floats, Floats, Floats]:
    """ONNX keeps what Paddle renews: its update gate is the other's complement, so its signs turn."""
    signs = np.repeat(np.array([-1, 1, 1], np.float32), _WIDTH)
    return into.T * signs[:, None], state * signs[:, None], bias * signs


def _layer(graph: Graph, x: str, number: int, width: int) -> str:
    """Both directions over x [characters, 1, width], as [characters, 1, 256]."""
    ws, rs, bs = [], [], []
    for place in (2 * number, 2 * number + 1):
        flat = _weights(f"gru_{place}.w_0", 3 * _WIDTH * _WIDTH)
        two = flat[: 2 * _WIDTH * _WIDTH].reshape(_WIDTH, 2 * _WIDTH)
        one = flat[2 * _WIDTH * _WIDTH :].reshape(_WIDTH, _WIDTH)
        into = _weights(f"fc_{place}.w_0", width, 3 * _WIDTH)
        bias = _weights(f"fc_{place}.b_0", 3 * _WIDTH) + _weights(f"gru_{place}.b_0", 3 * _WIDTH)
        w, r, b = _gates(into, np.concatenate([two.T, one.T]), bias)
        ws.append(w)
        rs.append(r)
        bs.append(np.concatenate([b, np.zeros(3 * _WIDTH, np.float32)]))
    found = graph.node(
        "GRU",
        x,
        _constant(graph, np.concatenate(ws), (2, 3 * _WIDTH, width)),
        _constant(graph, np.concatenate(rs), (2, 3 * _WIDTH, _WIDTH)),
        graph.constant(np.stack(bs).astype(np.float32)),
        direction="bidirectional",
        hidden_size=_WIDTH,
    )
    moved = graph.node("Transpose", found, perm=[0, 2, 1, 3])
    return graph.node("Reshape", moved, graph.constant(np.array([-1, 1, 2 * _WIDTH], np.int64)))


def network() -> Any:
    """From vectors [characters, 128] to scores [characters, 57]."""
    graph = Graph()
    x = graph.node("Unsqueeze", "vectors", graph.constant(np.array([1], np.int64)))
    x = _layer(graph, _layer(graph, x, 0, _WIDTH), 1, 2 * _WIDTH)
    x = graph.node("Reshape", x, graph.constant(np.array([-1, 2 * _WIDTH], np.int64)))
    out = graph.constant(_weights("fc_4.w_0", 2 * _WIDTH, _TAGS))
    scores = graph.node("Add", graph.node("MatMul", x, out), graph.constant(_weights("fc_4.b_0", _TAGS)))
    return graph.model(("vectors", ["characters", _WIDTH]), {"scores": (scores, ["characters", _TAGS])})


def _kept() -> list[tuple[int, str]]:
    """Characters of GB 2312 and ASCII; others, which LAC was hardly taught, are read as unknown."""
    return [(k, c) for k, c in _pairs("word.dic") if len(c) == 1 and c.encode("gb2312", "ignore")]


def build() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for old in FOLDER.glob("*.npz"):
        old.unlink()
    (FOLDER / "model.onnx").write_bytes(network().SerializeToString())
    pairs = _pairs("word.dic")
    unknown = next(k for k, c in pairs if c == "OOV")
    table = _weights("word_emb", max(k for k, _ in pairs) + 1, _WIDTH)
    kept = [(unknown, "\0"), *_kept()]
    for number, part in enumerate((kept[:_HALF], kept[_HALF:]), 1):
        small, steps = _small(table[[k for k, _ in part]])
        characters = np.array([ord(c) for _, c in part], np.uint32)
        np.savez_compressed(
            FOLDER / f"characters-{number}.npz", characters=characters, vectors=small, steps=steps
        )
    crf = _weights("crfw", _TAGS + 2, _TAGS)
    tags = np.array([tag for _, tag in sorted(_pairs("tag.dic"))])
    np.savez_compressed(FOLDER / "moves.npz", tags=tags, first=crf[0], last=crf[1], moves=crf[2:])
    tell(
        "zh",
        {
            "licence": "Apache-2.0 (LAC, Baidu), as jieba 0.42.1 (MIT) carries it",
            "source": "the small network of LAC, from the package jieba 0.42.1, in 8 bits; own rules",
            "trained_by": "training/entities_chinese.py",
        },
    )


if __name__ == "__main__":
    build()
