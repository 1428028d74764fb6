"""What is said of one image, from several sources, as one list: same things merged, contradictions marked."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

Kind = Literal["text", "caption", "written", "class", "object"]
ORDER: tuple[Kind, ...] = ("text", "caption", "written", "class", "object")
# NaN and infinities are none.
Finite = Annotated[float, Meta(ge=-1e9, le=1e9)]
Region = tuple[Finite, Finite, Finite, Finite]
"""Left, top, right, bottom as shares of the image."""

LEAST_WITHIN = 8
"""Letters and digits that a line must have to count as part of a longer text."""
ALIKE = 0.6
"""Share of pairs of neighbouring characters that two texts have in common to speak of the same thing."""
_ENDS = re.compile(r"[\n\u3002\uff01\uff1f\uff1b]|[.!?;](?=\s|$)")
_DIGITS = re.compile(r"\d+")


class Told(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One source of an item: its own words and region, as they came."""

    kind: Kind
    id: str
    text: str
    region: Region | None = None
    score: Finite | None = None
    by: str | None = None


class Item(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing said of an image; `conflicts` are the ids of items that say otherwise."""

    id: str
    kind: Kind
    text: str
    sources: tuple[Told, ...]
    region: Region | None = None
    score: Finite | None = None
    conflicts: tuple[str, ...] = ()


def item_of(told: Told) -> Item:
    """An item of one source."""
    return Item(
        id=f"{told.kind}:{told.id}",
        kind=told.kind,
        text=told.text,
        sources=(told,),
        region=told.region,
        score=told.score,
    )


def merged(items: Iterable[Item]) -> list[Item]:
    """The items by kind, each kind in its order: what is written in the image and stands in a text of the
    request too is one item with both sources; what is nearly the same is kept and marked. Merging what is
    merged changes nothing.
    """
    kept: list[Item] = []
    for item in sorted(items, key=lambda item: ORDER.index(item.kind)):
        at = next((at for at, other in enumerate(kept) if _is_same(other, item)), None)
        if at is None:
            kept.append(item)
        else:
            kept[at] = _joined(kept[at], item)
    return _marked(kept)


@lru_cache(maxsize=4096)
def key_of(text: str) -> str:
    """A text without what differs by chance: width, case, space, punctuation."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(char for char in folded if char.isalnum())


def _is_same(kept: Item, item: Item) -> bool:
    if (
        kept.kind == item.kind
        or item.kind not in ("caption", "written")
        or kept.kind not in ("text", "caption")
    ):
        return False
    whole, key = key_of(kept.text), key_of(item.text)
    if not key:
        return False
    return key == whole or (
        item.kind == "written" and len(key) >= LEAST_WITHIN and _stands_in(item.text, kept.text)
    )


def _stands_in(line: str, text: str) -> bool:
    """Whether a line is a part of a text that ends where numbers and words end: 2,50 is not in 12,507."""
    whole, key = key_of(text), key_of(line)
    at = whole.find(key)
    while at >= 0:
        before, after = whole[max(0, at - 1) : at], whole[at + len(key) :][:1]
        if not ((before.isdigit() and key[0].isdigit()) or (after.isdigit() and key[-1].isdigit())):
            return True
        at = whole.find(key, at + 1)
    return False


def _joined(kept: Item, item: Item) -> Item:
    sources = kept.sources + tuple(told for told in item.sources if told not in kept.sources)
    own = next((told.region for told in kept.sources if told.kind == kept.kind and told.region), None)
    regions = [told.region for told in sources if told.region is not None]
    region = own or (_around(regions) if regions else None)
    return msgspec.structs.replace(kept, sources=sources, region=region)


def _around(regions: Sequence[Region]) -> Region:
    left, top, right, bottom = zip(*regions, strict=True)
    return min(left), min(top), max(right), max(bottom)


def _marked(items: list[Item]) -> list[Item]:
    against: dict[str, list[str]] = {item.id: [] for item in items}
    sayings = [(item, _pieces(item.text)) for item in items if item.kind in ("text", "caption")]
    for line in (item for item in items if item.kind == "written"):
        for other, pieces in sayings:
            if _disagrees(key_of(line.text), pieces):
                against[line.id].append(other.id)
                against[other.id].append(line.id)
    return [msgspec.structs.replace(item, conflicts=tuple(against[item.id])) for item in items]


def _pieces(text: str) -> list[str]:
    """A text's sentences, and it itself, as keys."""
    return [piece for piece in (key_of(part) for part in (text, *_ENDS.split(text))) if piece]


def _disagrees(key: str, pieces: Sequence[str]) -> bool:
    """Whether a line speaks of the same thing as one of the pieces, in nearly its words."""
    # A sentence that is there as it stands is confirmed; another that is alike is no contradiction then.
    return bool(key) and key not in pieces and any(_nearly(key, piece) for piece in pieces)


def _nearly(one: str, other: str) -> bool:
    if not len(one) <= 2 * len(other) <= 4 * len(one):
        return False
    rest, rest_other = _DIGITS.sub("", one), _DIGITS.sub("", other)
    if rest == rest_other and len(rest) >= 3:
        return True
    pairs, pairs_other = _pairs(one), _pairs(other)
    return bool(pairs and pairs_other) and len(pairs & pairs_other) / len(pairs | pairs_other) >= ALIKE


@lru_cache(maxsize=4096)
def _pairs(key: str) -> frozenset[str]:
    return frozenset(key[at : at + 2] for at in range(len(key) - 1))
