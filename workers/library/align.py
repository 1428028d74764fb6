"""`local/multimodal/align`: which text of a request belongs to which of its images."""

from __future__ import annotations

import re
import unicodedata
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import Meta

from workers.backends.function import capability
from workers.errors import BadInput

MOST_PARTS = 256
Way = Literal["reference", "label", "caption", "position"]
_TOKEN = re.compile(r"[0-9a-z]+|\d+|.", re.IGNORECASE | re.ASCII | re.DOTALL)
Corner = Annotated[float, Meta(ge=0, le=1)]


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """One part of a request, text or image.

    `id` defaults to `p0`, `p1`... by place in the list, `at` (a time, a page, an offset) to that place. Of a
    text: `refers_to` names its images, `region` is the part of them that it speaks of (left, top, right,
    bottom, as shares). Of an image: `label` is what texts call it (`Figure 2`), `caption` what it shows.
    """

    id: Annotated[str, Meta(min_length=1, max_length=128)] | None = None
    at: float | None = None
    text: str | None = None
    refers_to: str | tuple[str, ...] = ()
    region: tuple[Corner, Corner, Corner, Corner] | None = None
    image: Any = None
    image_url: str | None = None
    label: str | None = None
    caption: str | None = None


class _Part(NamedTuple):
    id: str
    at: float
    piece: Piece
    grams: frozenset[str]
    name: str
    """Of an image: its label, of a text: the text, as `_tokens` writes them; empty where there is none."""


@capability(
    "local/multimodal/align",
    cacheable=True,
    licence="Apache-2.0 (this project)",
    source="no model: references, labels, alike letters and places",
    quality="by definition: each pair says by which rule it was found",
)
def align(
    parts: Annotated[list[Piece], Meta(min_length=1, max_length=MOST_PARTS)],
    reach: Annotated[float, Meta(ge=0)] = 1.0,
    overlap: Annotated[float, Meta(gt=0, le=1)] = 0.5,
) -> dict[str, Any]:
    """Pairs texts and images by reference, label, caption or position; names what has no partner."""
    texts, images = _sorted_out(parts)
    known = {image.id for image in images}
    groups: dict[str, list[dict[str, Any]]] = {}
    alone = []
    for text in texts:
        found = _partners(text, images, known, reach, overlap)
        if not found:
            alone.append(text.id)
        for image, way, score in found:
            said: dict[str, Any] = {
                "id": text.id,
                "text": text.piece.text,
                "by": way,
                "score": round(score, 4),
            }
            if text.piece.region is not None:
                said["region"] = list(text.piece.region)
            groups.setdefault(image, []).append(said)
    shown = [{**_image(image), "texts": groups[image.id]} for image in images if image.id in groups]
    left = [image.id for image in images if image.id not in groups]
    return {"groups": shown, "unmatched": {"texts": alone, "images": left}}


def _sorted_out(parts: list[Piece]) -> tuple[list[_Part], list[_Part]]:
    texts: list[_Part] = []
    images: list[_Part] = []
    seen: set[str] = set()
    for index, piece in enumerate(parts):
        name = piece.id or f"p{index}"
        if name in seen:
            raise BadInput(f"inputs.parts[{index}] has the id of another part; give each its own")
        seen.add(name)
        at = float(index) if piece.at is None else piece.at
        is_image = piece.image is not None or piece.image_url is not None
        if is_image == (piece.text is not None):
            raise BadInput(f"inputs.parts[{index}] has a `text`, or an `image` or `image_url`: one of them")
        words = _folded((piece.caption if is_image else piece.text) or "")
        called = _folded(piece.label or "") if is_image else words
        part = _Part(name, at, piece, _grams(words), _tokens(called) if called else "")
        (images if is_image else texts).append(part)
    return texts, images


def _partners(
    text: _Part, images: list[_Part], known: set[str], reach: float, overlap: float
) -> list[tuple[str, Way, float]]:
    """The first way that finds any: reference, label, caption, position."""
    named = text.piece.refers_to
    named = (named,) if isinstance(named, str) else named
    if named:
        if missing := sum(name not in known for name in named):
            raise BadInput(f"a part refers to {missing} images that are not in inputs.parts; look at its ids")
        return [(name, "reference", 1.0) for name in dict.fromkeys(named)]
    labelled = [image.id for image in images if image.name and image.name in text.name]
    if labelled:
        return [(name, "label", 1.0) for name in labelled]
    likeness = [(_alike(text.grams, image.grams), image.id) for image in images]
    best = max(likeness, key=lambda pair: pair[0], default=(0.0, ""))
    if best[0] >= overlap:
        return [(best[1], "caption", best[0])]
    near = min(images, key=lambda image: (abs(image.at - text.at), image.at), default=None)
    if near is None or not (gap := abs(near.at - text.at)) <= reach:
        return []
    return [(near.id, "position", 1.0 / (1.0 + gap))]


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _tokens(words: str) -> str:
    """Words, numbers and all other characters, parted so that what stands there whole is a plain part of it:
    `figure 1` is not in `figure 12`. Chinese is written without spaces; only letters of alphabets and digits
    make one word. One search each, whose time grows with the length alone.
    """
    return f"\0{chr(0).join(_TOKEN.findall(words))}\0"


def _grams(words: str) -> frozenset[str]:
    """Pairs of neighbouring characters: they work alike with and without spaces between words."""
    return frozenset(words[at : at + 2] for at in range(len(words) - 1))


def _alike(one: frozenset[str], other: frozenset[str]) -> float:
    """Jaccard index."""
    both = len(one & other)
    return both / (len(one) + len(other) - both) if both else 0.0


def _image(part: _Part) -> dict[str, Any]:
    piece = part.piece
    shown: dict[str, Any] = {"id": part.id}
    for name in ("image", "image_url", "label", "caption"):
        if (value := getattr(piece, name)) is not None:
            shown[name] = value
    return shown
