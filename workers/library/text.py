"""`local/text/clean`: text as models expect it."""

from __future__ import annotations

import html as entities
import re
import unicodedata
from typing import Annotated, Literal

from msgspec import Meta

from workers.backends.function import capability
from workers.library.markup import strip_tags

_LINES = re.compile(r"\r\n?|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_BLANKS = re.compile(r"[^\S\n]+")
_BREAKS = re.compile(r" ?\n[ \n]*")
# Joiners stay: they shape emoji and several scripts.
_JOINERS = frozenset("\u200c\u200d")


def _folds() -> dict[int, str]:
    """Every full-width or half-width character of Unicode and what it is in usual width."""
    found = {}
    for code in (0x3000, *range(0xFF01, 0xFFEF)):
        form, _, plain = unicodedata.decomposition(chr(code)).partition(" ")
        if form in ("<wide>", "<narrow>"):
            found[code] = "".join(chr(int(word, 16)) for word in plain.split())
    return found


_FOLDS = _folds()


@capability(
    "local/text/clean",
    cacheable=True,
    licence="Apache-2.0 (this project)",
    source="no model: the rules of Unicode and HTML",
    quality="exact: no model is involved",
)
def clean(
    text: str,
    html: Literal["keep", "entities", "strip"] = "keep",
    width: bool = True,
    form: Literal["NFC", "NFKC"] = "NFC",
    lines: bool = False,
    max_chars: Annotated[int, Meta(ge=1)] | None = None,
) -> dict[str, str]:
    """Text in one Unicode form, without control characters and superfluous space."""
    if html == "strip":
        text = strip_tags(text)
    if html != "keep":
        text = entities.unescape(text)
    if width:
        text = text.translate(_FOLDS)
    text = _LINES.sub("\n", text)
    text = "".join(character for character in text if not _is_control(character))
    # Only now: what was between a letter and its accent is gone.
    text = unicodedata.normalize(form, text)
    text = _BREAKS.sub("\n", _BLANKS.sub(" ", text)).strip()
    if not lines:
        text = text.replace("\n", " ")
    return {"text": text if max_chars is None else text[:max_chars].rstrip()}


def _is_control(character: str) -> bool:
    if character in "\n\t" or character in _JOINERS:
        return False
    return unicodedata.category(character) in ("Cc", "Cf", "Cs")
