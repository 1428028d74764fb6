"""How long an input is, in tokens, by a rule of thumb."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

_CJK = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]")
_CHARS_PER_TOKEN = 4
"""English has about four characters a token under the usual byte-pair vocabularies, Chinese about one."""


def tokens_of(value: Any, limit: int) -> int:
    """An estimate of the tokens in all texts within `value`: maps and lists are searched, bytes are not.

    Each CJK character is one; the rest counts as its words or a quarter of its characters, whichever is more.
    Stops counting once above `limit`.
    """
    count = 0
    rest: list[Any] = [value]
    while rest and count <= limit:
        item = rest.pop()
        if isinstance(item, str):
            count += tokens_in(item)
        elif isinstance(item, Mapping):
            rest.extend(item.values())
        elif isinstance(item, list | tuple):
            rest.extend(_texts(item))
    return count


def tokens_in(text: str) -> int:
    """The estimate for one text."""
    cjk = 0
    if not text.isascii():
        text, cjk = _CJK.subn(" ", text)
    words = text.split()
    chars = sum(map(len, words))
    return cjk + max(len(words), -(-chars // _CHARS_PER_TOKEN))


def _texts(items: Iterable[Any]) -> list[Any]:
    # Pixels and tensors are long lists of numbers; they are left out before they are stacked.
    return [item for item in items if not isinstance(item, int | float)]
