"""Where people live: streets, boxes, postcodes, and addresses in Chinese; ages, which are told alike."""

from __future__ import annotations

import re
from collections.abc import Iterator

from streams.privacy.finding import Detector, Finding

NAME = "addresses"

_STREET_WORD = (
    r"(?:street|st|road|rd|avenue|ave|boulevard|blvd|lane|ln|drive|dr|court|ct|square|sq|place|pl|terrace"
    r"|crescent"
    r"|close|highway|hwy|parkway|pkwy|way|row|mews|grove|gardens|hill|alley|loop|trail|trl|circle|cir"
    r"|plaza|walk|quay"
    r"|wharf|green|bypass|pass|point|coves?|courts|parks?|extensions?|squares?|turnpike|estates?|heights"
    r"|ridge|view)"
)
_ENGLISH = re.compile(
    rf"(?i)(?<![\w.,$€£-])\d{{1,6}}[a-z]?(?:-\d{{1,5}})?,? (?:[^\W\d_][\w'’.-]*[ ]){{1,4}}{_STREET_WORD}\b\.?"
    rf"|(?<![\w.,$€£-])\d{{1,6}} \d{{1,4}}(?:st|nd|rd|th) {_STREET_WORD}\b"
)
_NAMED = re.compile(
    r"\b(?:[A-Z][\w'’-]+ ){1,3}(?:Street|Road|Avenue|Boulevard|Lane|Drive|Court|Crescent|Highway|Parkway"
    r"|Terrace"
    r"|Square|St\.|Rd\.?|Ave\.?|Blvd\.?|Ln\.?)(?!\w)"
)
_SUFFIXED = re.compile(
    r"(?i)\b[^\W\d_][\w-]*(?:stra(?:ß|ss)e|str\.|gasse|allee|platz|weg|damm|ufer|ring|straat|laan|plein"
    r"|kade|gracht|gatan"
    r"|vägen|gata|veien|vegen|vej|gade|stræde|katu|kuja|polku|tie|stíg|gränd|torget|utca)\.?"
    r"[ ,]{1,2}\d{1,5}[ ]?[a-z]?\b"
    r"|\b[^\W\d_][\w-]+ (?:stra(?:ß|ss)e|weg|platz|allee|ring|ufer|utca|út|u\.|tér|körút|katu|tie|gate"
    r"|vei|väg|sokak|cad)"
    r"[ ,]{1,2}\d{1,5}[ ]?[a-z]?\b"
)
_PREFIXED = re.compile(
    r"(?i)\b(?:rue|avenue|av\.|allée|chemin|quai|impasse|boulevard|bd|place|via|viale|piazza|corso|vicolo"
    r"|strada|largo"
    r"|calle|c/|avda\.?|avenida|plaza|paseo|carrer|carretera|camino|rua|rúa|praça|travessa|estrada|ul\."
    r"|ulica|al\.|os\.|pl\."
    r"|aleja|bulevar|strada|str\.|ulice|nám\.|trg|ulitsa|ул\.|улица|проспект|пр\.|переулок|οδός|λεωφόρος"
    r"|jalan|jl\.)"
    r"\s+(?:[^\W_][\w'’.-]*[ ,]{1,2}){1,6}?(?:n[º°o.]*\s?)?\d{1,5}\b"
    r"|\d{1,5}(?:[ ,]| bis | ter ){1,2}(?:rue|avenue|av\.|allée|chemin|quai|impasse|boulevard|bd|place|cours)"
    r"\s(?:de |du |des |d'|l'|la |le )*[^\W\d_][\w'’-]*"
)
_BOX = re.compile(
    r"(?i)\bp\.?\s?o\.?\s?box\s?#?\d+|\bpost(?:fach|bus|boks|box|office box)\s?#?\d+"
    r"|\bapartado(?: de correos)?\s\d+"
    r"|\bcasella postale\s\d+|\b(?:psc|cmr|unit)\s\d+,?\s*box\s\d+|\b[ADF]PO\s+A[AEP]\b(?:\s\d{5})?"
    r"|\bboîte postale\s\d+|\bB\.?P\.?\s\d{2,}"
)
_UNIT = re.compile(
    r"(?i)\b(?:apt|apartment|suite|ste|flat|room|rm|unit|floor|appt|wohnung|piso"
    r"|lägenhet)\b\.?\s?#?(?:no\.?\s?)?\d{1,5}[a-z]?\b"
)
_CORNER = re.compile(r"(?i)\bthe corner of [^\n.?!{}]{3,60}? and [^\s{}]+")
_POSTCODE = re.compile(
    r"\b(?!PIN|ATM)(?:GIR ?0AA|[A-PR-UWYZ](?:\d{1,2}|[A-HK-Y]\d|[A-HK-Y]\d\d|\d[A-HJKSTUW]"
    r"|[A-HK-Y]\d[ABEHMNPRVWXY])"
    r" ?\d[ABD-HJLNP-UW-Z]{2})\b"
    r"|\b[ABCEGHJ-NPRSTVXY]\d[A-Z] ?\d[A-Z]\d\b"
    r"|\b(?:AL|AK|AZ|AR|CA|CO|CT|DE|FL|GA|HI|ID|IL|IN|IA|KS|KY|LA|ME|MD|MA|MI|MN|MS|MO|MT|NE|NV|NH|NJ|NM"
    r"|NY|NC|ND|OH|OK"
    r"|OR|PA|RI|SC|SD|TN|TX|UT|VT|VA|WA|WV|WI|WY|DC|PR|GU|AA|AE|AP)[ ,]{1,2}\d{5}(?:-\d{4})?\b"
    r"|(?<![\w$€£.,])(?!(?:19|20)\d\d )[1-9]\d{3} ?(?!SA|SD|SS|AM|PM|KB|MB|GB|US|EU|UK|MS|MM|CM|KM"
    r"|KG)[A-Z]{2}\b"
    r"|(?<![\w$€£.,-])(?:D-|F-|A-|CH-|L-|I-|E-)?\d{5} (?=[A-ZÄÖÜÉÈ][\w'’-]{2,})[A-ZÄÖÜÉÈ][\w'’-]+"
    r"|(?<=[^\W\d_]{3} )(?<![\w$€£.,])\d{5}(?:-\d{4})?(?=\s*(?:$|[.,;\n]))"
)
_SAID_POSTCODE = re.compile(
    r"(?i)(?:\bzip(?:\s?code)?|\bpost(?:al)?\s?code|\bpostcode|\bplz|\bpostleitzahl|\bcode postal"
    r"|\bc[óo]digo postal|\bcap\b"
    r"|\bpincode|邮编|邮政编码)\s*(?:is|ist|est|es|=|:|：|是|为)?\s*((?=[\w -]*\d)[A-Z0-9][A-Z0-9 -]{2,9})"
)
_SAID = re.compile(
    r"(?i)\b(?:address|adresse|dirección|indirizzo|adres|lives? (?:at|on)|living at|residing at|wohnhaft"
    r"|domicil\w*|located at"
    r"|ship(?:ped)? to|deliver(?:ed)? to|sent? to|meet (?:me"
    r"|you) at)\b[^\n\d]{0,40}?(\d{1,6}[a-z]? [^\W\d_][\w'’-]*[^\n?!]{0,40})"
)
_CHINESE = re.compile(
    r"[\u4e00-\u9fff]{2,8}(?:省|自治区)[\u4e00-\u9fff]{2,10}(?:市|州|盟)"
    r"|[\u4e00-\u9fff]{2,7}市[\u4e00-\u9fff]{1,7}[区县镇乡]"
    r"|[\u4e00-\u9fff]{1,8}(?:路|街|大道|巷|弄|胡同|里)\s?[0-9一二三四五六七八九十百]+\s?[号弄巷]"
    r"|[\u4e00-\u9fff]{0,8}(?:小区|花园|公寓|大厦|新村|家园|苑)?\s?\d+\s?(?:号楼|栋|幢|单元|室)"
    r"|(?:住址|地址|住在|家住|寄到|送到|收货地址)\s?(?:是|为|在|:|：)?\s?[\u4e00-\u9fff\d]{3,30}"
)
_AGE = re.compile(
    r"(?i)\b\d{1,3}[ -]?(?:years?|yrs?|months?)[ -](?:old|of age)\b|\b\d{1,3}\s?(?:y/o|yo|y\.o\.?|yrs? old)\b"
    r"|\baged? (?:of |is |was )?\d{1,3}\b|\bage[ds]?\s?[:=]\s?\d{1,3}\b"
    r"|\bturn(?:s|ed|ing)? \d{1,3}\b(?! (?:times|percent|degrees|pages|into))|\bat the age of \w+"
    r"|\b(?:i am|i'm|he is|he's|she is|she's|they are) (?:now |only |just |about )?\d{1,3}(?=[.,!?;]|$"
    r"| and | now)"
    r"|\b\d{1,3} jahre alt|\b\d{1,3} ans\b|\b\d{1,3} años\b|\b\d{1,3} anni\b|\b\d{1,3} jaar oud"
    r"|\bin (?:my|his|her) (?:early |late |mid )?[2-9]0s"
    r"|\d{1,3}\s?(?:岁|周岁)|年龄\s?[:：是为]?\s?\d{1,3}"
    r"|\b(?:\d{1,2}th|\d*1st|\d*2nd|\d*3rd) birthday\b"
)


class Addresses:
    """Streets, boxes, postcodes and ages."""

    name = NAME

    def find(self, text: str, /) -> Iterator[Finding]:
        if not text.isascii():
            yield from _each("address", _CHINESE, text)
        yield from _each("address", _NAMED, text)
        lower = text.lower()
        if "corner of" in lower:
            yield from _each("address", _CORNER, text)
        if not any(map(str.isdigit, text)):
            if "age of" in lower or "0s" in lower:
                yield from _each("age", _AGE, text)
            return
        for pattern in (_ENGLISH, _SUFFIXED, _PREFIXED, _BOX, _UNIT, _POSTCODE):
            yield from _each("address", pattern, text)
        for said in (_SAID_POSTCODE, _SAID):
            yield from (Finding("address", match[1], 0.9, NAME) for match in said.finditer(text))
        yield from _each("age", _AGE, text)


def _each(kind: str, pattern: re.Pattern[str], text: str) -> Iterator[Finding]:
    return (Finding(kind, match[0], 0.9, NAME) for match in pattern.finditer(text))


def detector() -> Detector:
    """The detector `addresses`."""
    return Addresses()
