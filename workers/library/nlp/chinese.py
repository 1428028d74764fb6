"""Names in Chinese text: LAC's small network over characters (`training.entities_chinese`), and rules for the
ends of what it finds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from workers.library.nlp.tagger import best_row, shares_of
from workers.library.nlp.tokens import HAN

if TYPE_CHECKING:
    import onnxruntime

Floats = NDArray[np.float32]
_KINDS: Final = {"PER": "person", "LOC": "place", "ORG": "organization"}
_DOTS: Final = "·•・‧∙"
_PLAIN: Final = str.maketrans({"“": '"', "”": '"', "‘": "'", "’": "'"})
_WIDE: Final = {k: k - 0xFEE0 for k in range(ord("！"), ord("～") + 1)}
_PART = re.compile("[^，。；：！？（）“”《》〈〉、,;:!?()\"<>\\[\\]【】「」『』…—\\s]+")  # fmt: skip
_LETTER = re.compile(rf"[{HAN}]")
_SIDE = re.compile("(?<=..)(?:[东西南北中]|东北|东南|西北|西南)[部边面侧]$")
_LEVEL = re.compile("[省市区县州]$")


class Piece(NamedTuple):
    """A word as the network cuts it; `share` is the least probability of its characters' tags."""

    tag: str
    start: int
    end: int
    share: float


class Network(NamedTuple):
    """`rows` maps a character to its row of `vectors` [characters, 128]; row 0 is of unknown ones. `moves`
    [tags, tags] weighs a tag after another; `first` and `last` a tag at the ends.
    """

    tags: tuple[str, ...]
    rows: Mapping[int, int]
    vectors: Floats
    session: onnxruntime.InferenceSession
    first: Floats
    last: Floats
    moves: Floats

    def pieces(self, text: str) -> list[Piece]:
        """The words of a text that is not empty, in order, with their tags."""
        plain = text.translate(_PLAIN).translate(_WIDE)
        rows = [self.rows.get(ord(c), 0) for c in plain]
        (scores,) = self.session.run(["scores"], {"vectors": self.vectors[rows]})
        scores[0] += self.first
        scores[-1] += self.last
        best = best_row(scores, self.moves)
        shares = shares_of(scores, self.moves)[np.arange(len(best)), best].tolist()
        found: list[Piece] = []
        for at, (place, share) in enumerate(zip(best, shares, strict=True)):
            tag, _, part = self.tags[place].rpartition("-")
            if part == "I" and found and found[-1].tag == tag:
                last = found[-1]
                found[-1] = Piece(tag, last.start, at + 1, min(last.share, share))
            else:
                found.append(Piece(tag or part, at, at + 1, share))
        return found


def read_network(folder: Path) -> Network:
    """From the files that `training.entities_chinese` wrote."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        (folder / "model.onnx").read_bytes(), options, providers=["CPUExecutionProvider"]
    )
    characters, vectors = [], []
    for number in (1, 2):
        with np.load(folder / f"characters-{number}.npz") as data:
            characters += data["characters"].tolist()
            vectors.append(data["vectors"].astype(np.float32) * data["steps"])
    rows = {c: row for row, c in enumerate(characters)}
    with np.load(folder / "moves.npz") as data:
        tags = tuple(str(tag) for tag in data["tags"])
        return Network(
            tags, rows, np.concatenate(vectors), session, data["first"], data["last"], data["moves"]
        )


def names_of(pieces: Sequence[Piece], text: str) -> list[Piece]:
    """Those that are names, by kind (`person`, `organization`, `place`), in order, without overlap."""
    found: list[Piece] = []
    for piece in _joined(pieces, text):
        kind = _KINDS.get(piece.tag)
        if kind is None:
            continue
        for part in _PART.finditer(text, piece.start, piece.end):
            name = _ended(Piece(kind, *part.span(), piece.share), text)
            if name.end - name.start < 2 or not (kind == "organization" or _LETTER.search(part[0])):
                continue
            if found and _parts_of_one(found[-1], name, text):
                name = name._replace(start=found[-1].start, share=min(found.pop().share, name.share))
            found.append(name)
    return found


def _joined(pieces: Sequence[Piece], text: str) -> list[Piece]:
    """`哈利`, `·`, `华纳` as one person, where one of them is a name."""
    found: list[Piece] = []
    waiting = list(reversed(pieces))
    while waiting:
        piece = waiting.pop()
        last = found[-1] if found else piece
        dot = found and (text[piece.start] in _DOTS or text[last.end - 1] in _DOTS)
        if dot and _LETTER.match(text, last.start) and _PART.fullmatch(text, last.start, piece.end):
            found.pop()
            tag = "PER" if {last.tag, piece.tag} & {*_KINDS, "nr"} else last.tag
            piece = Piece(tag, last.start, piece.end, min(last.share, piece.share))
        found.append(piece)
    return found


def _ended(name: Piece, text: str) -> Piece:
    """`苏门答腊岛北部` as `苏门答腊岛`."""
    side = _SIDE.search(text, name.start, name.end) if name.tag == "place" else None
    return name._replace(end=side.start()) if side and side.start() - name.start >= 2 else name


def _parts_of_one(last: Piece, name: Piece, text: str) -> bool:
    """`四川省`, `资阳市`: one place by its levels."""
    return (
        last.tag == name.tag == "place"
        and last.end == name.start
        and bool(_LEVEL.search(text[last.start : last.end]))
    )
