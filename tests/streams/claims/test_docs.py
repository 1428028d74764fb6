"""The examples of docs/claims.md run and print what they say."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from schemas.claims import claim_of
from streams.claims import MAX_OBJECT_BYTES
from streams.claims.loading import MOST_CLAIMS
from streams.claims.names import prefix_of
from streams.claims.store import THREADS, TIMEOUT_S
from streams.claims.values import MOST_MEMORY
from streams.router.claimed import MOST_READ, WAIT_S

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "claims.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```\s+```text\n(.*?)```", PAGE, re.DOTALL)


def test_there_are_examples() -> None:
    assert len(EXAMPLES) == PAGE.count("```python") == 2


@pytest.mark.parametrize(("code", "said"), EXAMPLES)
def test_an_example_prints_what_the_page_says(code: str, said: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False, cwd=ROOT
    )
    assert done.stdout == said, done.stderr


def test_the_page_says_the_bounds_that_hold() -> None:
    mib = 2**20
    assert f"{MAX_OBJECT_BYTES // mib} MiB an object, {MOST_CLAIMS} claims a request" in PAGE
    assert f"{MOST_MEMORY // mib} MiB of memory" in PAGE
    assert f"more than {MOST_READ // mib} MiB in one request, or not read within {WAIT_S:g} s" in PAGE
    assert f"{THREADS} a store, each call with a timeout of {TIMEOUT_S:g} s" in PAGE
    assert prefix_of(".x") == "=2Ex"
    assert prefix_of("_") == "=5F"


def test_the_claim_at_the_top_has_the_keys_of_one() -> None:
    (shown,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    claim = json.loads(shown)
    assert claim_of(claim | {"sha256": "0" * 64}) is not None
