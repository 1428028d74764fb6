"""A sentence from what was seen in an image, and how far it may be believed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from workers.library.vision.boxes import Found

TRUST = 0.75
"""Of the things that `vision/detect` told, so many were there (15 of 20 on its photos)."""
SURE_CLASS = 0.5
"""From here a class is named beside its kind, and a second subject beside the first."""
KINDS = {  # ImageNet's classes of the kinds that the detector knows, first and last
    "bird": ((7, 24), (80, 100), (127, 146)),
    "dog": ((151, 268),),
    "cat": ((281, 285),),
    "sheep": ((348, 350),),
    "cow": ((345, 347),),
    "car": ((436, 436), (468, 468), (511, 511), (609, 609), (627, 627), (656, 656), (751, 751), (817, 817)),
    "bus": ((654, 654), (779, 779), (874, 874)),
    "bicycle": ((444, 444), (671, 671)),
    "motorbike": ((665, 665), (670, 670)),
    "aeroplane": ((404, 404), (895, 895)),
    "boat": ((472, 472), (554, 554), (625, 625), (814, 814), (914, 914)),
    "chair": ((423, 423), (559, 559), (765, 765), (857, 857)),
    "sofa": ((831, 831),),
    "bottle": ((440, 440), (720, 720), (737, 737), (898, 898), (907, 907)),
}
MOST_WORDS = 60
TEXT_LINES = 3
NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


class Seen(NamedTuple):
    """What the models and a look at the pixels gave. `scores` are the classes', `text` is what is written,
    `text_score` how sure that is, `lines` how many lines it has.
    """

    scores: Sequence[float]
    labels: Sequence[str]
    things: Sequence[Found]
    text: str
    text_score: float
    lines: int
    colours: Sequence[str]
    gray: bool
    photo: bool
    width: int
    height: int


class Said(NamedTuple):
    """A caption, what it is about, and how likely it is right."""

    caption: str
    subjects: list[str]
    confidence: float


def said(seen: Seen) -> Said:
    """The caption; its confidence is low where nothing is sure enough to be its subject."""
    if seen.lines >= TEXT_LINES and not seen.things:
        about = f'an image of text, "{_cut(seen.text)}"'
        return Said(_whole(about, seen, words=False), ["text"], seen.text_score)
    subjects = _subjects(seen)
    kind = "a photo" if seen.photo else "a picture"
    what = f"{kind} of {_joined([_counted(one) for one in subjects])}"
    return Said(_whole(what, seen, words=True), [one.name for one in subjects], subjects[0].sure)


class Subject(NamedTuple):
    """A thing to name: how likely it is there, how many there are, and which of its kind it looks like."""

    sure: float
    name: str
    number: int = 1
    like: str = ""


def _subjects(seen: Seen) -> list[Subject]:
    """The surest first; those less sure than even are left out but for the first."""
    found = {one.name: one for one in _things(seen.things)}
    best = max(range(len(seen.scores)), key=lambda at: seen.scores[at])
    score, kind, label = float(seen.scores[best]), _kind_of(best), seen.labels[best]
    if kind:
        # A class is often mistaken for another of its kind: the kind is what the likeliest class stands for.
        whole = _mass(seen.scores, kind)
        thing = found.get(kind, Subject(0.0, kind))
        sure = 1.0 - (1.0 - thing.sure) * (1.0 - whole)
        found[kind] = Subject(sure, kind, thing.number, label if score >= SURE_CLASS else "")
    else:
        found[label] = Subject(score, label)
    order = sorted(found.values(), key=lambda one: -one.sure)
    return [order[0], *(one for one in order[1:] if one.sure >= SURE_CLASS)]


def _things(things: Sequence[Found]) -> list[Subject]:
    """What the detector told by name; a face is a person."""
    counts: dict[str, int] = {}
    scores: dict[str, float] = {}
    for one in things:
        counts[one.label] = counts.get(one.label, 0) + 1
        name = "person" if one.label == "face" else one.label
        scores[name] = max(scores.get(name, 0.0), one.score)
    faces = counts.pop("face", 0)
    if faces:
        counts["person"] = max(faces, counts.get("person", 0))
    return [Subject(TRUST * scores[name], name, count) for name, count in counts.items()]


def _kind_of(index: int) -> str | None:
    return next((kind for kind, spans in KINDS.items() if any(a <= index <= b for a, b in spans)), None)


def _mass(scores: Sequence[float], kind: str) -> float:
    return min(1.0, sum(float(scores[at]) for a, b in KINDS[kind] for at in range(a, b + 1)))


def _whole(what: str, seen: Seen, *, words: bool) -> str:
    parts = [what]
    if words and seen.text:
        parts.append(f'with the words "{_cut(seen.text)}"')
    if seen.gray:
        parts.append("in black and white")
    elif seen.colours:
        parts.append(f"mostly {_joined(seen.colours)}")
    parts.append(f"{seen.width}x{seen.height}")
    return ", ".join(parts)


def _cut(text: str) -> str:
    text = " ".join(text.split()).replace('"', "'")
    return text if len(text) <= MOST_WORDS else text[: MOST_WORDS - 1].rstrip() + "\u2026"


def _joined(names: Sequence[str]) -> str:
    return " and ".join((", ".join(names[:-1]), names[-1])) if len(names) > 1 else names[0]


def _counted(one: Subject) -> str:
    like = f" ({one.like})" if one.like else ""
    if one.number == 1:
        return f"{'an' if one.name[:1].lower() in 'aeiou' else 'a'} {one.name}{like}"
    many = NUMBERS[one.number] if one.number < len(NUMBERS) else str(one.number)
    return f"{many} {_plural(one.name)}{like}"


def _plural(name: str) -> str:
    if name in ("person", "sheep"):
        return "people" if name == "person" else name
    return name + ("es" if name.endswith(("s", "x", "ch", "sh")) else "s")
