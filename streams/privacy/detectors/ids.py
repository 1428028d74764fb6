"""Numbers that states give to people, by shape, checksum (python-stdnum) and the words before them."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from streams.privacy.finding import Detector, Finding

NAME = "ids"


class Form(NamedTuple):
    """How a country writes an id: `check` is its module in stdnum, `words` True where words must tell as
    well, since other numbers look the same."""

    pattern: re.Pattern[str]
    check: str | None = None
    words: bool = False


def _form(pattern: str, check: str | None = None, words: bool = False) -> Form:
    return Form(
        re.compile(rf"(?<![\w.-])(?:{pattern})(?![\w-])(?!\.\d)", re.IGNORECASE | re.ASCII), check, words
    )


_FORMS = (
    _form(r"\d{3}-\d{2}-\d{4}|\d{3} \d{2} \d{4}"),  # US SSN and ITIN; also those never given out
    _form(r"\d{9}", "us.ssn", words=True),
    _form(r"\d{3}[ -]\d{3}[ -]\d{3}", "ca.sin"),
    _form(
        r"(?!BG|GB|NK|KN|TN|NT|ZZ)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?\d{2} ?\d{2} ?\d{2} ?[A-D]"
    ),  # UK NINO
    _form(r"\d{3} ?\d{3} ?\d{4}", "gb.nhs", words=True),
    _form(r"\d{2} ?\d{3} ?\d{3} ?\d{3}", "de.idnr", words=True),
    _form(r"\d{2} ?\d{6} ?[A-Z] ?\d{3}"),  # German pension insurance
    _form(r"[CFGHJKLMNPRTVWXYZ][CFGHJKLMNPRTVWXYZ0-9]{8}\d?", words=True),  # German identity card
    _form(r"[12] ?\d{2} ?\d{2} ?(?:\d{2}|2[AB]) ?\d{3} ?\d{3}(?: ?\d{2})?", "fr.nir"),
    _form(r"\d{8}[- ]?[A-Z]", "es.dni"),
    _form(r"[XYZ][- ]?\d{7}[- ]?[A-Z]", "es.nie"),
    _form(r"[A-Z]{6} ?\d{2}[A-EHLMPR-T]\d{2} ?[A-Z]\d{3}[A-Z]"),  # Italian codice fiscale
    _form(r"\d{9}", "nl.bsn", words=True),
    _form(r"\d{2}\.?\d{2}\.?\d{2}[- ]?\d{3}\.?\d{2}", "be.nn"),
    _form(r"\d{9}", "pt.nif", words=True),
    _form(r"\d{11}", "pl.pesel"),
    _form(r"(?:19|20)?\d{6}[-+]\d{4}"),  # Sweden, Denmark, Latvia
    _form(r"\d{6}[-+ABCDEFYXWVU]\d{3}[0-9A-Y]", "fi.hetu"),
    _form(r"\d{6} ?\d{5}", "no.fodselsnummer"),
    _form(r"756[. ]?\d{4}[. ]?\d{4}[. ]?\d{2}", "ch.ssn"),
    _form(r"\d{4} ?\d{6}", "at.vnr", words=True),
    _form(r"\d{7}[A-W][A-IW]?", "ie.pps"),
    _form(r"\d{6}/\d{3,4}", "cz.rc"),
    _form(r"[1-8]\d{12}", "ro.cnp"),
    _form(r"\d{11}", "tr.tckimlik", words=True),
    _form(r"\d{3}\.?\d{3}\.?\d{3}-?\d{2}", "br.cpf"),
    _form(r"[A-Z]{4}\d{6}[HM][A-Z]{5}[0-9A-Z]\d"),  # Mexican CURP
    _form(r"\d{1,2}\.?\d{3}\.?\d{3}-[\dK]", "cl.rut"),
    _form(r"\d{4}[ -]?\d{4}[ -]?\d{4}", "in_.aadhaar"),
    _form(r"[A-Z]{3}[ABCFGHJLPT][A-Z]\d{4}[A-Z]", "in_.pan"),
    _form(r"[1-9]\d{5}(?:19|20)\d{2}(?:0[1-9]|1[0-2])(?:[0-2]\d|3[01])\d{3}[\dX]"),  # China; checksum or not
    _form(r"\d{6}-[1-8]\d{6}"),  # Korea
    _form(r"\d{4} ?\d{4} ?\d{4}", None, words=True),  # Japan's My Number
    _form(r"[A-Z][12]\d{8}"),  # Taiwan
    _form(r"[STFGM]\d{7}[A-Z]"),  # Singapore
    _form(r"[A-Z]{1,2}\d{6}\(?[\dA]\)?", None, words=True),  # Hong Kong
    _form(r"\d{3} ?\d{3} ?\d{3}", "au.tfn", words=True),
    _form(r"\d{13}", "za.idnr"),
    _form(r"\d{9}", "il.idnr", words=True),
)
_WORDS = re.compile(
    r"(?i)\b(?:ssn|social|insurance|national|identity|id card|id(?: number| no)?\b|tax|tin\b|itin|nino"
    r"|nhs|steuer|identif"
    r"|personal|person|sozial|versicher|ausweis|bsn|burger|sofi|nif\b|nie\b|dni\b|fiscal|codice|cpr|svnr"
    r"|tfn|sin\b"
    r"|kimlik|teudat|mrn\b|medical record|patient)|身份证|证件|マイナンバー|社保"
)
_NUMBER = r"((?=[A-Z]{0,9}[ .\-/]?\d)[A-Z0-9](?:[ .\-/]?[A-Z0-9]){4,18})\b"
_SAID = {
    "passport": r"passport|reisepass|passeport|pasaporte|passaporto|paspoort|paszport|护照",
    "driving_licence": r"driver'?s?'? ?licen[cs]e|driving ?licen[cs]e|licen[cs]e (?:no|number)"
    r"|führerschein|permis de conduire|\bDL\b"
    r"|licencia de conducir|patente di guida|rijbewijs|驾驶证|驾照",
    "national_id": r"social security|\bssn\b|national insurance|national id|identity card|id card"
    r"|identification"
    r"|tax (?:id|ref|no|number)|\bID (?:no|number|nr)|personalausweis|身份证|medical record|\bMRN\b"
    r"|insurance (?:no|number|id)"
    r"|policy (?:no|number)|member id|patient (?:id|no|number)|employee (?:id|number)|student (?:id|number)"
    r"|versichertennummer",
    "plate": r"licen[cs]e plate|number plate|plate (?:no|number)|kennzeichen|matr[ií]cula|plaque"
    r"|\btarga\b|kenteken"
    r"|车牌|\bVIN\b|registration (?:no|number)",
    "bank_account": r"account(?= ?\d)|account (?:no|nr|number|num|#)|acct|kontonummer|account is|compte n"
    r"|账号|账户|帐号",
}
_BY_WORDS = tuple(
    (kind, re.compile(rf"(?i)(?:{words})[^\n]{{0,32}}?(?<![\w]){_NUMBER}", re.ASCII))
    for kind, words in _SAID.items()
)
_SAID_AT_ALL = re.compile("(?i)" + "|".join(_SAID.values()))
_CHINESE_PLATE = re.compile(
    r"[京津沪渝冀豫云辽黑湘皖鲁新苏浙赣鄂桂甘晋蒙陕吉闽贵粤青藏川宁琼][A-HJ-NP-Z][·・ ]?[A-HJ-NP-Z0-9]{5,6}"
)


class Ids:
    """National ids of some 35 countries, passports, licences and plates."""

    name = NAME

    def find(self, text: str, /) -> Iterator[Finding]:
        if sum(map(str.isdigit, text)) < 4:
            return
        told: bool | None = None
        for form in _FORMS:
            for match in form.pattern.finditer(text):
                if form.words and told is None:
                    told = _WORDS.search(text) is not None
                if form.words and not told:
                    break
                if form.check is None or _valid(form.check, match[0]):
                    yield Finding("national_id", match[0], 1.0, NAME)
        if _SAID_AT_ALL.search(text):
            for kind, pattern in _BY_WORDS:
                for match in pattern.finditer(text):
                    if sum(map(str.isdigit, match[1])) >= 3:
                        yield Finding(kind, match[1], 0.9, NAME)
        if not text.isascii():
            yield from (Finding("plate", one, 1.0, NAME) for one in _CHINESE_PLATE.findall(text))


@cache
def _checker(name: str) -> object:
    return importlib.import_module(f"stdnum.{name}")


def _valid(name: str, text: str) -> bool:
    return bool(_checker(name).is_valid(text))  # type: ignore[attr-defined]


def detector() -> Detector:
    """The detector `ids`."""
    return Ids()
