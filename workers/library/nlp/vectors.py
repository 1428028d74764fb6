"""Sentence vectors from the weights that the package wordllama carries (MIT): means of token vectors.

The package's own loader looks for its tokenizer on the network, so its two files are read here.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from workers.errors import LoadError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Floats = NDArray[np.float32]
DIMENSIONS: Final = 256
NAME: Final = "wordllama-l2-supercat-256"
PACKAGES: Final = ("wordllama", "tokenizers", "safetensors")
_MOST_TOKENS: Final = 2_000
_WEIGHTS: Final = Path("weights/l2_supercat_256.safetensors")
_TOKENIZER: Final = Path("tokenizers/l2_supercat_tokenizer_config.json")


class Vectors(NamedTuple):
    """`table` [tokens, 256]: one vector a token of `tokenizer`."""

    tokenizer: Tokenizer
    table: NDArray[np.float16]

    def of(self, texts: Sequence[str]) -> Floats:
        """[texts, 256], each of length 1, or all zero where a text has no token."""
        return unit(self.raw(texts))

    def raw(self, texts: Sequence[str]) -> Floats:
        """[texts, 256]: means of token vectors. A text's vector does not depend on its neighbours; of a long
        text the first 2,000 tokens count.
        """
        found = np.zeros((len(texts), DIMENSIONS), np.float32)
        for row, text in enumerate(texts):
            # A lone surrogate is no character to the tokenizer, which would refuse the text.
            sound = text.encode("utf-8", "replace").decode("utf-8")
            ids = self.tokenizer.encode(sound, add_special_tokens=False).ids[:_MOST_TOKENS]
            if ids:
                found[row] = self.table[ids].astype(np.float32).mean(axis=0)
        return found


def unit(rows: Floats) -> Floats:
    """Rows of length 1; a row of zeros stays."""
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    whole: Floats = (rows / np.where(norms > 0, norms, 1)).astype(np.float32)
    return whole


def missing() -> list[str]:
    """The packages that are not installed."""
    return [name for name in PACKAGES if find_spec(name) is None]


@cache
def read_vectors() -> Vectors:
    """Once a process; 16 MB.

    Raises:
        LoadError: the packages or the files in them are not there.
    """
    spec = find_spec("wordllama")
    if missing() or spec is None or not spec.submodule_search_locations:
        raise LoadError(f"sentence vectors need {', '.join(missing())}; install edgeway[text]")
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    folder = Path(spec.submodule_search_locations[0])
    for file in (folder / _WEIGHTS, folder / _TOKENIZER):
        if not file.is_file():
            raise LoadError(f"{file} is not there; this needs wordllama 0.4: install edgeway[text] anew")
    (table,) = load_file(folder / _WEIGHTS).values()
    tokenizer = Tokenizer.from_file(str(folder / _TOKENIZER))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return Vectors(tokenizer, table)
