"""`local/multimodal/fuse`: all that is known of each image of a request as one ordered record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from workers.backends.function import capability
from workers.errors import BadInput
from workers.library.align import MOST_PARTS, Piece, align
from workers.library.multimodal.merging import Item, Told, item_of, merged

ONLY = "image"
"""The id of the image where the request has one alone, without parts."""
ABOUT = ("image_url", "label")
MOST_ITEMS = 1000


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """An image and its texts, as `multimodal/align` gives them."""

    id: str
    texts: tuple[dict[str, Any], ...] = ()


class Findings(msgspec.Struct, frozen=True, kw_only=True):
    """The outputs of the vision capabilities on one image, as they are."""

    ocr: dict[str, Any] | None = None
    caption: dict[str, Any] | None = None
    classify: dict[str, Any] | None = None
    detect: dict[str, Any] | None = None


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An image's record, as this capability gives it; given again, it stays as it is."""

    id: str
    items: tuple[Item, ...] = ()
    image_url: str | None = None
    label: str | None = None
    text: str = ""


@capability(
    "local/multimodal/fuse",
    cacheable=True,
    licence="Apache-2.0 (this project)",
    source="no model: texts are compared by their letters, digits and pairs of characters",
    quality="laws on random records: nothing is lost, the order is stable, fusing twice changes nothing",
)
def fuse(
    parts: Annotated[list[Piece], Meta(max_length=MOST_PARTS)] | None = None,
    groups: Annotated[list[Group], Meta(max_length=MOST_PARTS)] | None = None,
    found: dict[str, Findings] | None = None,
    text: str | None = None,
    ocr: dict[str, Any] | None = None,
    caption: dict[str, Any] | None = None,
    classify: dict[str, Any] | None = None,
    detect: dict[str, Any] | None = None,
    images: Annotated[list[Record], Meta(max_length=MOST_PARTS)] | None = None,
    loose: list[Item] | None = None,
) -> dict[str, Any]:
    """One ordered record an image from its texts, the words in it, captions, classes and objects."""
    records = {record.id: record for record in images or ()}
    if images is not None and len(records) != len(images):
        raise BadInput("inputs.images has two records of one id")
    left = [*(loose or ())]
    if parts:
        placed, alone = _placed(parts, groups)
        for record in placed:
            records[record.id] = _with(records.get(record.id), record)
        left += [item for item in alone if item.id not in {one.id for one in left}]
    single = Findings(ocr=ocr, caption=caption, classify=classify, detect=detect)
    whole = dict(found or {})
    if text is not None or single != Findings():
        whole[ONLY] = _single(records, whole, single)
        own = [item_of(Told(kind="text", id="text", text=text))] if text else []
        records[ONLY] = _with(records.get(ONLY), Record(id=ONLY, items=tuple(own)))
    if unknown := sum(name not in records for name in whole):
        raise BadInput(f"inputs.found tells of {unknown} images that are not among the parts or records")
    for name, findings in whole.items():
        items = tuple(item_of(told) for told in _told(findings))
        records[name] = _with(records[name], Record(id=name, items=items))
    if not records and not left:
        raise BadInput("there is nothing to fuse; give parts, images, text or what was found in the image")
    return _answer(records, left)


def _single(records: Mapping[str, Record], whole: Mapping[str, Findings], single: Findings) -> Findings:
    if whole or any(name != ONLY for name in records):
        raise BadInput("text, ocr, caption, classify and detect are for one image alone; give `found` by id")
    return single


def _answer(records: Mapping[str, Record], loose: list[Item]) -> dict[str, Any]:
    done = []
    for record in records.values():
        if len(record.items) > MOST_ITEMS:
            raise BadInput(f"an image has more than {MOST_ITEMS} items")
        items = tuple(merged(record.items))
        shown = msgspec.structs.replace(record, items=items)
        done.append(msgspec.structs.replace(shown, text="\n".join(_lines(shown))))
    told = [{"items": (), **msgspec.to_builtins(record)} for record in done]
    texts = [record.text for record in done] + [f"text: {item.text}" for item in loose]
    pairs = sum(len(item.conflicts) for record in done for item in record.items) // 2
    answer = {"images": told, "loose": loose, "text": "\n\n".join(texts), "conflicts": pairs}
    # Over the wire tuples are lists: the answer is the same here and there.
    built: dict[str, Any] = msgspec.msgpack.decode(msgspec.msgpack.encode(answer))
    return built


def _placed(parts: list[Piece], groups: list[Group] | None) -> tuple[list[Record], list[Item]]:
    """The records that the parts make, in the order of the images, and the texts without an image."""
    if groups is None:
        groups = msgspec.convert(align(parts)["groups"], list[Group])
    known = {group.id: group for group in groups}
    records, used, texts = [], set(), []
    for at, piece in enumerate(parts):
        name = piece.id or f"p{at}"
        if piece.text is not None:
            texts.append((name, piece.text))
            continue
        said = [] if piece.caption is None else [Told(kind="caption", id="given", text=piece.caption)]
        for one in known.pop(name, Group(id=name)).texts:
            told = _text(one)
            used.add(told.id)
            said.insert(len(said) if piece.caption is None else len(said) - 1, told)
        items = tuple(item_of(told) for told in said)
        records.append(Record(id=name, items=items, image_url=piece.image_url, label=piece.label))
    if known:
        raise BadInput(f"inputs.groups has {len(known)} images that are not in inputs.parts")
    alone = [item_of(Told(kind="text", id=name, text=text)) for name, text in texts if name not in used]
    return records, alone


def _text(one: Mapping[str, Any]) -> Told:
    return _checked({"kind": "text"} | dict(one))


def _with(record: Record | None, more: Record) -> Record:
    """A record and what it does not have yet."""
    if record is None:
        return more
    seen = {source for item in record.items for source in item.sources}
    names = {item.id for item in record.items}
    items = []
    for item in more.items:
        if set(item.sources) <= seen:
            continue
        # Two looks at one image tell of different things under one number.
        name = next(name for name in _names(item.id) if name not in names)
        names.add(name)
        items.append(msgspec.structs.replace(item, id=name))
    return msgspec.structs.replace(
        record,
        items=(*record.items, *items),
        image_url=record.image_url or more.image_url,
        label=record.label or more.label,
    )


def _names(name: str) -> Iterator[str]:
    yield name
    yield from (f"{name}.{again}" for again in count(2))


def _told(findings: Findings) -> Iterator[Told]:
    try:
        if findings.caption and (said := findings.caption.get("caption")):
            yield Told(kind="caption", id="seen", text=str(said))
        for at, line in enumerate((findings.ocr or {}).get("lines", ())):
            yield _seen("written", at, line["text"], line)
        for at, one in enumerate((findings.classify or {}).get("classes", ())):
            yield _seen("class", at, one["label"], {"score": one.get("score")})
        for at, one in enumerate((findings.detect or {}).get("objects", ())):
            yield _seen("object", at, one["label"], one)
    except (KeyError, TypeError, AttributeError) as error:
        raise BadInput("what was found in an image is not as the vision capabilities tell it") from error


def _seen(kind: str, at: int, text: Any, one: Mapping[str, Any]) -> Told:
    given = {"kind": kind, "id": str(at), "text": text, "region": one.get("share"), "score": one.get("score")}
    return _checked(given)


def _checked(given: dict[str, Any]) -> Told:
    """Outputs of other steps come as they are, from the caller too: a number for a text would fail later."""
    try:
        return msgspec.convert(given, Told)
    except msgspec.ValidationError as error:
        form = "an id, a text, perhaps a score and a region (left, top, right and bottom as shares)"
        raise BadInput(f"what is said of an image has {form}: {error}") from error


def _lines(record: Record) -> Iterator[str]:
    """The record as plain text: the sentences first, then what the models saw."""
    names = [name for name in (record.label, record.image_url) if name]
    yield f"[image {' '.join((record.id, *names))}]"
    for item in record.items:
        if item.kind in ("text", "caption", "written"):
            yield f"{item.kind}: {item.text}" + (
                f" (conflicts with {', '.join(item.conflicts)})" if item.conflicts else ""
            )
    for kind, heading in (("class", "classes"), ("object", "objects")):
        some = [item for item in record.items if item.kind == kind]
        if some:
            yield f"{heading}: " + ", ".join(
                item.text if item.score is None else f"{item.text} {item.score:.2f}" for item in some
            )
