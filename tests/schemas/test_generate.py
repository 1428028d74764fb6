from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings

from schemas import generate, topics
from schemas.codec import encode
from schemas.messages import Plan, Result
from tests.schemas.examples import EXAMPLES
from tests.schemas.strategies import JSON_VALUES, structs
from tests.schemas.test_rules import ORIGINAL

FOLDER = Path(__file__).parents[2] / generate.FOLDER


@pytest.fixture(scope="module")
def messages():
    return jsonschema.Draft202012Validator(generate.message_schema())


@pytest.fixture(scope="module")
def rules():
    return jsonschema.Draft202012Validator(generate.rules_schema())


@pytest.fixture(scope="module")
def asyncapi():
    return json.loads(generate.documents()["asyncapi.json"])


def test_what_is_checked_in_is_current():
    assert generate.stale(FOLDER) == [], "run `python -m schemas.generate`"


def test_the_command_writes_and_checks(tmp_path, capsys):
    folder = tmp_path / "new" / "schemas"
    assert generate.main(["--check", "--folder", str(folder)]) == 1
    assert "edgeway.schema.json" in capsys.readouterr().err
    assert generate.main(["--folder", str(folder)]) == 0
    assert generate.main(["--check", "--folder", str(folder)]) == 0


class TestMessageSchema:
    def test_is_a_schema(self):
        jsonschema.Draft202012Validator.check_schema(generate.message_schema())

    @pytest.mark.parametrize("name", EXAMPLES)
    def test_accepts_the_examples(self, messages, name):
        messages.validate(json.loads(encode(EXAMPLES[name], "json")))

    @given(message=structs(Result, JSON_VALUES) | structs(Plan, JSON_VALUES))
    @settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    def test_accepts_what_the_structs_write(self, messages, message):
        messages.validate(json.loads(encode(message, "json")))

    @pytest.mark.parametrize(
        "value",
        [
            {"task": "image_captioning", "image_url": "https://example.org/a.png"},
            {"task": "intent", "text": "where is my card", "privacy_level": "HIGH"},
        ],
    )
    def test_accepts_plain_requests(self, messages, value):
        messages.validate(value)

    @pytest.mark.parametrize(
        "value", [{"type": "plan"}, {"deadline_ms": 0}, {"v": 9}, {"privacy": "LOW"}, {"tenant": "a b"}, []]
    )
    def test_refuses(self, messages, value):
        assert not messages.is_valid(value)


class TestRulesSchema:
    def test_is_a_schema(self):
        jsonschema.Draft202012Validator.check_schema(generate.rules_schema())

    @pytest.mark.parametrize(
        "value",
        [
            json.loads(ORIGINAL),
            {},
            {"tasks": json.loads(ORIGINAL), "reply_topics": ["m"]},
            {"a": {}, "reply_topics": ["m"], "builtin": False},
            {"tasks": {"a": {"steps": [{"name": "x", "weight": 1.5}], "merge": {"strategy": "collect"}}}},
            {"a": {"privacy": "high", "cache": False, "latency_ms": 200, "predictor": "p.npz"}, "cache_s": 0},
            {"a": {"steps": [{"name": "x", "alternatives": ["y"]}]}, "privacy": {"detectors": None}},
            {"prices": {"cloud/a": {"per_call": 1}}, "budget": {}, "tenants": {"acme": {"per_day": 5}}},
            {"hosts": ["a.example"], "decomposers": ["split.py"], "privacy": {"mask": ["email"]}},
        ],
    )
    def test_accepts(self, rules, value):
        rules.validate(value)

    @pytest.mark.parametrize(
        "value",
        [
            [],
            {"tasks": []},
            {"tasks": {}, "a": {}},
            {"a": {"x": 1}},
            {"tasks": {"a": {"steps": [{}]}}},
            {"a": {"weights": {"cost": -1}}},
            {"prices": {"cloud/a": {"per_cal": 1}}},
            {"budget": {"per_day": -1}},
            {"tenants": {"acme": {"privacy": "low"}}},
            {"privacy": {"detectors": "formats"}},
            {"a": {"steps": [{"name": "x", "alternatives": "y"}]}},
            {"cache_s": 86_401},
        ],
    )
    def test_refuses(self, rules, value):
        assert not rules.is_valid(value)


def references(node):
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "$ref":
                yield value
            else:
                yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


def resolve(document, reference):
    assert reference.startswith("#/")
    for part in reference[2:].split("/"):
        document = document[part]
    return document


class TestAsyncApi:
    def test_every_reference_resolves(self, asyncapi):
        found = set(references(asyncapi))
        assert found
        for reference in found:
            assert resolve(asyncapi, reference)

    def test_operations_use_messages_of_their_channel(self, asyncapi):
        assert asyncapi["asyncapi"].startswith("3.")
        for operation in asyncapi["operations"].values():
            assert operation["action"] in ("send", "receive")
            channel = operation["channel"]["$ref"]
            assert channel.startswith("#/channels/")
            assert all(
                message["$ref"].startswith(f"{channel}/messages/") for message in operation["messages"]
            )

    def test_every_topic_has_a_channel_and_every_message_is_used(self, asyncapi):
        addresses = {channel["address"] for channel in asyncapi["channels"].values()}
        assert {spec.name for spec in topics.core_topics()} <= addresses
        used = {name for channel in asyncapi["channels"].values() for name in channel["messages"]}
        assert used == set(asyncapi["components"]["messages"])

    def test_every_parameter_of_an_address_is_described(self, asyncapi):
        for channel in asyncapi["channels"].values():
            needed = {part.split("}")[0] for part in channel["address"].split("{")[1:]}
            assert needed == set(channel.get("parameters", ()))

    @pytest.mark.parametrize("name", ["Request", "Plan", "Result", "Heartbeat"])
    def test_payloads_are_schemas_of_the_structs(self, asyncapi, name):
        schema = asyncapi["components"]["schemas"] | {
            "$ref": asyncapi["components"]["messages"][name]["payload"]["$ref"],
            "components": asyncapi["components"],
        }
        for example in EXAMPLES.values():
            fits = jsonschema.Draft202012Validator(schema).is_valid(
                msgspec.json.decode(encode(example, "json"))
            )
            assert fits == (type(example).__name__ == name)
