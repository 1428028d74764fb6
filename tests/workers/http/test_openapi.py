"""The description of a worker: a sound OpenAPI document, and a page that asks nobody else."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import jsonschema
import msgspec

from schemas.cards import Card
from workers.backends.function import backends_of, capability
from workers.http.openapi import document, example
from workers.http.page import POLICY, page

EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(1)>"


class Part(msgspec.Struct):
    name: str
    inner: list[Part] = []


def cards() -> list[Card]:
    @capability("local/nlp/summarize", licence="MIT", quality=EVIL)
    def summarize(text: str, sentences: int = 3) -> tuple[dict[str, str], float]:
        """The sentences that say most.

        Those that hold many words of the others.
        """
        return {}, 1.0

    @capability("cloud/tree", description=EVIL)
    def tree(parts: list[Part], image: bytes = b"") -> Part:
        return parts[0]

    @capability("local/raw")
    def raw(inputs: dict[str, Any], params: dict[str, Any]) -> Any:
        return inputs

    return [backend.card for function in (summarize, tree, raw) for backend in backends_of(function)]


def refs(found: Any) -> list[str]:
    if isinstance(found, dict):
        own = [found["$ref"]] if isinstance(found.get("$ref"), str) else []
        return own + [ref for value in found.values() for ref in refs(value)]
    return [ref for value in found for ref in refs(value)] if isinstance(found, list) else []


def test_every_capability_is_an_operation_and_every_reference_leads_somewhere() -> None:
    found = document(cards(), "1", token=False)
    assert found["openapi"] == "3.1.0"
    assert sorted(found["paths"]) == ["/cloud/tree", "/local/nlp/summarize", "/local/raw"]
    for ref in refs(found):
        assert ref.removeprefix("#/components/schemas/") in found["components"]["schemas"], ref
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+", name) for name in found["components"]["schemas"])
    operation = found["paths"]["/local/nlp/summarize"]["post"]
    assert "Those that hold many words" in operation["description"]
    assert "Licence: MIT" in operation["description"]
    assert set(operation["requestBody"]["content"]) == {
        "application/json",
        "application/msgpack",
        "text/plain",
    }
    assert "image/*" in found["paths"]["/cloud/tree"]["post"]["requestBody"]["content"]
    assert {"200", "422", "429", "503", "504"} <= set(operation["responses"])
    assert "security" not in found
    assert document(cards(), "1", token=True)["security"] == [{"bearer": []}]


def test_its_schemas_are_json_schemas_that_take_what_is_taken() -> None:
    found = document(cards(), "1", token=False)
    for name, schema in found["components"]["schemas"].items():
        jsonschema.Draft202012Validator.check_schema(schema)
        assert schema is not None, name
    body = found["paths"]["/local/nlp/summarize"]["post"]["requestBody"]["content"]["application/json"]
    check = jsonschema.Draft202012Validator({**found, **body["schema"]})
    assert check.is_valid({"text": "a", "sentences": 2})
    assert check.is_valid({"inputs": {"text": "a"}, "deadline_ms": 5})
    assert not check.is_valid({"sentences": 2})
    assert check.is_valid(body["example"])
    tree = jsonschema.Draft202012Validator({**found, "$ref": "#/components/schemas/cloud.tree.output"})
    assert tree.is_valid({"name": "a", "inner": [{"name": "b"}]})
    assert not tree.is_valid({"name": "a", "inner": [{"name": 1}]})


def test_an_example_has_what_is_required_and_the_defaults() -> None:
    schema = cards()[0].input_schema
    assert example(schema) == {"text": "", "sentences": 3}
    assert example({}) == {}


class Seen(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def test_a_page_escapes_all_and_asks_no_other_host() -> None:
    text = page(cards(), "1", token=True)
    seen = Seen()
    seen.feed(text)
    tags = [tag for tag, _ in seen.tags]
    assert tags.count("script") == 1
    assert "img" not in tags
    assert tags.count("form") == 3
    for _, attributes in seen.tags:
        assert not any(name.startswith("on") for name in attributes)
        assert not any("//" in (attributes.get(name) or "") for name in ("src", "href", "action"))
    assert "The sentences that say most." in text
    assert 'type="password"' in text
    assert 'type="password"' not in page(cards(), "1", token=False)
    assert "unsafe" not in POLICY
    assert "connect-src 'self'" in POLICY
