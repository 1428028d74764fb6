"""The examples of docs/backends.md run as they stand, against a server in place of the vendor's."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.faulty_server import Asked, FaultyServer, faulty
from workers.backends import Backend, Row
from workers.backends.openai import OpenAIBackend
from workers.errors import LoadError
from workers.models.offering import backend_of

PAGE = (Path(__file__).parents[3] / "docs" / "backends.md").read_text(encoding="utf-8")
VENDORS = ("https://api.example.com", "https://captions.example.com")
ASKED = {
    "summarize": (Row({"text": "a long text"}, {"words": 9}), {"summary": "said"}),
    "caption": (Row({"image_url": "https://example.com/a.png"}, {}), {"caption": "said"}),
    "mood": (Row({"text": "sunny"}, {}), {"mood": "good"}),
    "embed": (Row({"text": "a"}, {}), {"embedding": [0.5] * 256}),
    "caption_by_http": (Row({"image_url": "https://example.com/a.png"}, {}), {"caption": "a crayfish"}),
}


def speak(asked: Asked) -> Any:
    body = asked.json()
    if asked.path.endswith("embeddings"):
        return {"data": [{"embedding": [0.5] * body["dimensions"]}]}
    if "messages" not in body:
        return {"caption": "a crayfish"}
    text = '{"mood": "good"}' if "response_format" in body else "said"
    return {"choices": [{"message": {"content": text}}]}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultyServer]:
    for name in ("EXAMPLE_API_KEY", "CAPTION_KEY"):
        monkeypatch.setenv(name, "word")
    with faulty(speak) as started:
        yield started


def shown(kind: str, server: FaultyServer, folder: Path) -> list[str]:
    """The blocks of `kind`, the vendors' addresses replaced, and the key's file."""
    (folder / "key").write_text("word")
    found = re.findall(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)
    for vendor in VENDORS:
        found = [block.replace(vendor, server.url) for block in found]
    return [block.replace("/run/secrets/example_api_key", str(folder / "key")) for block in found]


async def asked(backend: Backend, row: Row) -> Any:
    await backend.load()
    (answer,) = await asyncio.to_thread(backend.infer, [row])
    backend.close()
    assert answer.error is None, answer.error
    return answer.output


async def test_the_apps(server: FaultyServer, tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    for block in shown("python", server, tmp_path):
        if "open_inference" not in block:  # tests/integration/test_open_inference.py runs that
            exec(block, names)
    backends = {name: value for name, value in names.items() if isinstance(value, Backend)}
    backends = {name: value for name, value in backends.items() if not isinstance(value, type)}
    # Those of inference servers are asked elsewhere: tests/workers/backends/test_open_inference*.py
    others = {name for name, backend in backends.items() if backend.card.model_type == "open_inference"}
    assert set(backends) - others == set(ASKED)
    for name, (row, output) in ASKED.items():
        assert await asked(backends[name], row) == output
    keys = {call.headers.get("authorization") or call.headers.get("x-api-key") for call in server.calls}
    assert keys == {"Bearer word", "word"}


async def test_the_card_of_a_repository(server: FaultyServer, tmp_path: Path) -> None:
    (block,) = shown("json", server, tmp_path)
    (tmp_path / "card.json").write_text(json.dumps(json.loads(block)))
    backend = backend_of(tmp_path)
    assert backend.card.max_cost is not None
    assert await asked(backend, Row({"text": "a"}, {})) == {"text": "said"}


def test_every_option_is_listed() -> None:
    listed = set(re.findall(r"`(\w+)`", PAGE))
    with pytest.raises(LoadError, match="they are") as caught:
        OpenAIBackend("cloud/a", url="https://a/v1", model="m", unknown=1)
    known = set(str(caught.value).partition("they are ")[2].split(", "))
    assert known <= listed
    assert len(known) > 25
