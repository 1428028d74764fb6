from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.errors import RulesError
from schemas.rules import MergeRule, Weights, capabilities_of, parse_rules
from schemas.templates import TEMPLATES

ORIGINAL = (
    b'{"image_captioning": {"local_threshold": 0.7, "fallback_url": "https://cloud-api.example.com/vision/caption"},'
    b' "financial_report": {"max_local_tokens": 512, "cloud_batch_size": 10}}'
)


def rules(**tasks: object):
    return parse_rules(json.dumps({"tasks": tasks, "builtin": False}).encode())


def refusal(raw: bytes | str) -> str:
    with pytest.raises(RulesError) as caught:
        parse_rules(raw.encode() if isinstance(raw, str) else raw)
    return str(caught.value)


class TestOriginal:
    """The two entries of the original, byte for byte."""

    def test_a_task_of_one_step(self):
        task = parse_rules(ORIGINAL).tasks["image_captioning"]
        (step,) = task.steps
        assert (step.name, step.capability, step.side) == ("image_captioning", "image_captioning", "auto")
        assert step.local_threshold == task.local_threshold == 0.7
        assert task.fallback_url == "https://cloud-api.example.com/vision/caption"
        assert task.merge is None

    def test_a_template_with_limits(self):
        task = parse_rules(ORIGINAL).tasks["financial_report"]
        assert [(step.side, step.capability) for step in task.steps] == [
            ("auto", "finance/tokenize"),
            ("auto", "nlp/entities"),
            ("cloud", "finance/indicators"),
            ("cloud", "finance/chart"),
        ]
        assert task.phrases == ("生成财报分析", "financial report")
        assert task.merge == MergeRule(strategy="weighted_fusion")
        assert (task.max_local_tokens, task.cloud_batch_size) == (512, 10)
        # Longer inputs go to the cloud.
        assert [step.max_local_tokens for step in task.steps] == [512, 512, None, None]
        without = parse_rules(b'{"financial_report": {"cloud_batch_size": 10}}').tasks["financial_report"]
        assert [step.side for step in without.steps] == ["local", "local", "cloud", "cloud"]


class TestTemplates:
    def test_are_there_without_a_word(self):
        for raw in (b"{}", b'{"tasks": {}}'):
            assert parse_rules(raw).tasks.keys() == TEMPLATES.keys()

    def test_traffic(self):
        task = parse_rules(b"{}").tasks["traffic_forecast"]
        assert task.phrases == ("实时路况预测", "live traffic")
        assert task.merge == MergeRule(strategy="priority_override")
        local, *cloud = task.steps
        assert (local.side, local.capability) == ("local", "geo/gps_check")
        assert all(step.side == "cloud" and step.priority > local.priority for step in cloud)

    def test_can_be_left_out(self):
        assert parse_rules(b'{"builtin": false}').tasks == {}
        assert (
            parse_rules(b'{"builtin": false, "financial_report": {}}').tasks["financial_report"].phrases == ()
        )

    def test_what_the_file_says_wins(self):
        task = parse_rules(
            '{"financial_report": {"phrases": ["年报"], "merge": {"strategy": "collect"}}}'.encode()
        ).tasks["financial_report"]
        assert (task.phrases, task.merge) == (("年报",), MergeRule(strategy="collect"))
        assert len(task.steps) == 4
        own = parse_rules(b'{"financial_report": {"capability": "finance/all"}}').tasks["financial_report"]
        assert [step.capability for step in own.steps] == ["finance/all"]


class TestTasks:
    def test_both_forms_say_the_same(self):
        tasks = {"a": {"side": "local"}, "b": {"capability": "x/y"}}
        own = {"reply_topics": ["m"], "apps": ["app.py"], "builtin": False}
        flat = parse_rules(json.dumps(tasks | own).encode())
        assert flat == parse_rules(json.dumps({"tasks": tasks, **own}).encode())
        assert (flat.reply_topics, flat.apps) == (("results.m",), ("app.py",))

    def test_a_task_named_as_a_key_of_the_file_hides_it_not(self):
        said = {"tasks": {"apps": {}, "reply_topics": {}}, "apps": ["app.py"], "reply_topics": ["m"]}
        rules = parse_rules(json.dumps(said).encode())
        assert (rules.reply_topics, rules.apps) == (("results.m",), ("app.py",))
        assert {"apps", "reply_topics"} <= rules.tasks.keys()

    def test_steps_take_from_the_task_what_they_do_not_say(self):
        task = rules(
            t={
                "local_threshold": 0.5,
                "slow_ms": 100,
                "on_slow": "wait",
                "max_local_tokens": 9,
                "side": "cloud",
                "steps": [{"name": "a"}, {"name": "b", "local_threshold": 0, "slow_ms": 7, "side": "auto"}],
            }
        ).tasks["t"]
        first, second = task.steps
        assert (first.local_threshold, first.slow_ms, first.on_slow, first.side) == (
            0.5,
            100,
            "wait",
            "cloud",
        )
        assert (second.local_threshold, second.slow_ms, second.side, second.max_local_tokens) == (
            0,
            7,
            "auto",
            9,
        )
        assert task.merge == MergeRule(strategy="collect")

    def test_references(self):
        given = {"x": "inputs.a.b", "y": "query", "z": "params.k", "s": "steps.a", "f": "steps.a.label"}
        steps = [{"name": "a"}, {"name": "b", "after": ["a"]}, {"name": "c", "after": ["b"], "inputs": given}]
        assert rules(t={"steps": steps}).tasks["t"].steps[2].inputs == given

    def test_weights(self):
        assert rules(t={"weights": {"cost": 1}}).tasks["t"].weights == Weights(cost=1)

    def test_capabilities(self):
        found = rules(
            t={"steps": [{"name": "a", "capability": "n/a"}, {"name": "b", "side": "cloud"}]},
            u={"capability": "n/a"},
        )
        assert capabilities_of(found) == (("cloud", "b"), ("cloud", "n/a"), ("local", "n/a"))

    def test_version_is_of_the_content(self):
        one = parse_rules(b'{"a": {}, "b": {"slow_ms": 5}}').version
        assert one == parse_rules(b'{\n "b": {"slow_ms": 5},\n "a": {}}').version
        assert one != parse_rules(b'{"a": {}, "b": {"slow_ms": 6}}').version
        assert len(one) == 12


class TestRefusals:
    @pytest.mark.parametrize(
        ("raw", "words"),
        [
            (b"", ["the file is empty"]),
            (b" \n", ["the file is empty"]),
            (b'{"a": {"capability": "x", "side": "edge"}}', ["$.a.side", "auto, cloud, local"]),
            (b'{\n"a": {},\n}', ["line 3"]),
            (b"[]", ["not a JSON object"]),
            (b"\xff", ["UTF-8"]),
            (b'{"a": {}, "a": {}}', ["'a'", "twice"]),
            (b'{"a": {"slow_ms": NaN}}', ["NaN"]),
            (b'{"a": {"slow_ms": 1e999}}', ["$.a.slow_ms"]),
            (b"[" * 100_000, ["deep"]),
            (b'{"a": {"phrases": ["\\ud800"]}}', ["rules"]),
            (b'{"tasks": []}', ["$.tasks", "object"]),
            (b'{"taskz": 5}', ["$.taskz", "'tasks'"]),
            (b'{"tasks": {}, "reply_topic": []}', ["$.reply_topic", "'reply_topics'"]),
            (b'{"tasks": {"a": 1}}', ["$.tasks.a", "object"]),
            (b'{"": {}}', ["name"]),
            (b'{"builtin": "no"}', ["$.builtin", "bool"]),
            (b'{"a": {\n"local_treshold": 1}}', ["$.a.local_treshold", "line 2", "'local_threshold'"]),
            (
                b'{"a": {"steps": [{"name": "x"},\n{"name": "y", "sides": 1}]}}',
                ["$.a.steps[1].sides", "line 2", "'side'"],
            ),
            (b'{"a": {"merge": {"strategi": "x"}}}', ["$.a.merge", "'strategy'"]),
            (b'{"a": {"weights": {"costs": 1}}}', ["$.a.weights.costs", "'cost'"]),
            (b'{"a": {"weights": {"cost": -1}}}', ["$.a.weights.cost", ">= 0"]),
            (b'{"a": {"weights": {"cost": 0, "latency": 0, "privacy": 0}}}', ["$.a.weights", "0"]),
            (b'{"a": {"local_threshold": 1.5}}', ["$.a.local_threshold", "<= 1"]),
            (b'{"a": {"deadline_ms": 600001}}', ["$.a.deadline_ms"]),
            (b'{"a": {"side": "edge"}}', ["$.a.side"]),
            (b'{"a": {"fallback_url": "file:///etc/passwd"}}', ["$.a.fallback_url"]),
            (b'{"a": {"steps": [{"name": "x/y"}]}}', ["$.a.steps[0].name", "slash"]),
            (b'{"a": {"steps": [{"name": "x"}, {"name": "x"}]}}', ["$.a.steps[1].name", "twice"]),
            (b'{"a": {"steps": [{"name": "x", "after": ["y"]}]}}', ["$.a.steps[0].after[0]", "'y'"]),
            (b'{"a": {"steps": [{"name": "x", "after": ["x"]}]}}', ["$.a.steps[0].after", "cycle"]),
            (b'{"a": {"steps": [{"name": "x", "capability": "x.y"}]}}', ["$.a.steps[0]", "capability"]),
            (b'{"a": {"capability": "n_p"}, "b": {"capability": "n/p"}}', ["'n_p'", "'n/p'"]),
            ('{"财报": {}}'.encode(), ["财报", "capability"]),
            (b'{"reply_topics": ["ok",\n"a b"]}', ["$.reply_topics[1]", "line 2"]),
        ],
        ids=lambda value: value[:50] if isinstance(value, bytes) else "",
    )
    def test_say_where_and_why(self, raw, words):
        message = refusal(raw)
        assert all(word in message for word in words), message

    @pytest.mark.parametrize(
        "reference", ["", "inputs", "inputs.", "step.a", "steps.", "steps.a.", "params", "query.a", "a"]
    )
    def test_references_of_no_form(self, reference):
        steps = [{"name": "a"}, {"name": "b", "after": ["a"], "inputs": {"k": reference}}]
        assert "$.t.steps[1].inputs.k" in refusal(json.dumps({"t": {"steps": steps}}))

    def test_references_to_what_is_not_before(self):
        steps = [{"name": "alpha"}, {"name": "b", "inputs": {"k": "steps.alpha"}}]
        assert "`after`" in refusal(json.dumps({"t": {"steps": steps}}))
        steps[1]["inputs"] = {"k": "steps.alpa"}
        assert "did you mean 'alpha'" in refusal(json.dumps({"t": {"steps": steps}}))

    def test_cycles_name_their_steps(self):
        steps = [{"name": "a"}, {"name": "b", "after": ["c"]}, {"name": "c", "after": ["b", "a"]}]
        message = refusal(json.dumps({"t": {"steps": steps}}))
        assert "'b', 'c'" in message
        assert "$.t.steps[1].after" in message

    @pytest.mark.parametrize("phrase", ["Live Traffic", "ｌｉｖｅ traffic", " live  traffic"])
    def test_phrases_tie_whatever_their_case_and_spacing(self, phrase):
        message = refusal(json.dumps({"mine": {"phrases": [phrase]}}))
        assert "'mine'" in message
        assert "builtin" in message

    def test_blank_phrases(self):
        assert "$.a.phrases[0]" in refusal('{"a": {"phrases": [" "]}}')

    def test_lines_are_found_behind_keys_of_the_same_name(self):
        merge = '"merge": {"strategy": "x", "params": {"slow_ms": "},{"}}'
        raw = '{"a": {' + merge + ',\n"phrases": ["slow_ms"],\n"slow_ms": 0}}'
        assert "$.a.slow_ms (line 3)" in refusal(raw)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda v: st.lists(v) | st.dictionaries(st.text(), v),
    )
)
def test_any_json_is_rules_or_refused(value):
    try:
        found = parse_rules(json.dumps(value).encode())
    except RulesError:
        return
    assert all(task.steps for task in found.tasks.values())


KEYS = [
    "capability",
    "phrases",
    "steps",
    "merge",
    "side",
    "slow_ms",
    "weights",
    "name",
    "after",
    "inputs",
    "x",
]
VALUES = st.recursive(
    st.sampled_from(["a", "b", "local", "query", "steps.a", 1, 0.5, None, True]),
    lambda v: st.lists(v, max_size=3) | st.dictionaries(st.sampled_from(KEYS), v, max_size=4),
    max_leaves=20,
)


@given(
    st.dictionaries(
        st.sampled_from(["tasks", "reply_topics", "builtin", "a", "b", "financial_report"]),
        VALUES,
        max_size=4,
    )
)
def test_any_near_miss_is_rules_or_refused(value):
    try:
        found = parse_rules(json.dumps(value).encode())
    except RulesError:
        return
    assert all(task.steps for task in found.tasks.values())


@given(st.binary(max_size=100).filter(lambda raw: b"{" not in raw))
def test_any_bytes_are_refused(raw):
    with pytest.raises(RulesError, match=r"^rules: "):
        parse_rules(raw)


class TestTakenForSomethingElse:
    """What reads well and means something else."""

    def test_a_side_before_a_capability(self):
        said = refusal('{"tasks": {"a": {"capability": "local/x/y"}}}')
        assert "begins with a side" in said
        assert '"capability": "x/y" and "side": "local"' in said

    def test_a_capability_beside_steps(self):
        said = refusal('{"tasks": {"a": {"capability": "x", "steps": [{"name": "y"}]}}}')
        assert "$.tasks.a.capability" in said
        assert "not both" in said

    def test_a_short_reply_topic_is_the_long_one(self):
        assert parse_rules(b'{"reply_topics": ["foo"]}').reply_topics == ("results.foo",)
