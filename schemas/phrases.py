"""When two texts are the same phrase: for the rules, which refuse ties, and for whoever looks for phrases."""

from __future__ import annotations

import re
import unicodedata

CJK = "\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff"
"""Characters of writing without spaces, as the inside of a character class."""

_BESIDE_CJK = re.compile(f"(?<=[{CJK}]) | (?=[{CJK}])")


def normal(text: str) -> str:
    """`text` for comparison: width and case folded, white space single, none beside Chinese characters."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    text = " ".join(text.casefold().split())
    return text if text.isascii() else _BESIDE_CJK.sub("", text)
