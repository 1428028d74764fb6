"""Refusals of keys that are sound one by one and wrong together, and of names that lead nowhere."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.errors import RulesError
from schemas.rules import Rules, parse_rules
from tests.schemas.strategies import JSON_VALUES
from tests.schemas.test_rules import ORIGINAL

AUTO = {"name": "x"}
LOCAL = {"name": "here", "side": "local"}
CLOUD = {"name": "there", "side": "cloud"}
PRICED = {"tasks": {"t": {"capability": "n/a"}}, "builtin": False}


def parsed(**said: object) -> Rules:
    return parse_rules(json.dumps(said).encode())


def problems(raw: bytes) -> dict[str, str]:
    """Path to reason; every one has its line in the text."""
    with pytest.raises(RulesError) as caught:
        parse_rules(raw)
    found = caught.value.problems
    assert str(caught.value) == "rules: " + "\n  ".join(map(str, found))
    assert all(1 <= problem.line <= raw.count(b"\n") + 1 for problem in found)
    return {problem.path: problem.reason for problem in found}


def read(raw: bytes) -> Rules | RulesError:
    try:
        return parse_rules(raw)
    except RulesError as error:
        return error


def refused(**said: object) -> tuple[str, str]:
    ((path, reason),) = problems(json.dumps(said).encode()).items()
    return path, reason


class TestSides:
    @pytest.mark.parametrize(
        ("task", "key"),
        [
            ({"side": "local", "steps": [LOCAL, CLOUD]}, "steps[1].side"),
            ({"side": "cloud", "steps": [CLOUD, LOCAL]}, "steps[1].side"),
            ({"side": "local", "fallback_url": "https://a.example/b"}, "fallback_url"),
            ({"side": "local", "cloud_batch_size": 4}, "cloud_batch_size"),
            ({"steps": [LOCAL], "cloud_batch_size": 4}, "cloud_batch_size"),
            ({"side": "cloud", "local_threshold": 0.5}, "local_threshold"),
            ({"side": "cloud", "max_local_tokens": 9}, "max_local_tokens"),
            ({"steps": [AUTO, CLOUD | {"local_threshold": 0.5}]}, "steps[1].local_threshold"),
            ({"steps": [AUTO, CLOUD | {"max_local_tokens": 5}]}, "steps[1].max_local_tokens"),
            ({"side": "local", "predictor": "p.npz"}, "predictor"),
            ({"side": "cloud", "predictor": "p.npz"}, "predictor"),
            ({"privacy": "high", "side": "cloud"}, "privacy"),
            ({"privacy": "high", "steps": [LOCAL, CLOUD]}, "privacy"),
            ({"privacy": "high", "fallback_url": "https://a.example/b"}, "fallback_url"),
            ({"fallback_headers": {"x-key": "A_KEY"}}, "fallback_headers"),
            ({"privacy": "high", "cache": True}, "cache"),
            ({"slow_ms": 500, "deadline_ms": 400}, "slow_ms"),
            ({"deadline_ms": 400, "steps": [AUTO | {"latency_ms": 500}]}, "steps[0].latency_ms"),
            ({"steps": [AUTO | {"alternatives": ["x"]}]}, "steps[0].alternatives[0]"),
            ({"steps": [AUTO | {"alternatives": ["y", "y"]}]}, "steps[0].alternatives[1]"),
            ({"steps": [AUTO | {"alternatives": ["a b"]}]}, "steps[0].alternatives[0]"),
        ],
    )
    def test_contradictions(self, task, key):
        assert refused(t=task)[0] == f"$.t.{key}"

    @pytest.mark.parametrize(
        "task",
        [
            {"side": "cloud", "local_threshold": 0.5, "steps": [CLOUD, AUTO | {"side": "auto"}]},
            {"steps": [LOCAL | {"max_local_tokens": 5}, CLOUD]},
            {"side": "local", "privacy": "high", "slow_ms": 500, "deadline_ms": 500},
            {"predictor": "p.npz", "fallback_url": "https://a.example:8443/b?c=d", "cache": False},
        ],
    )
    def test_what_is_none(self, task):
        assert "t" in parsed(t=task).tasks

    def test_keys_may_be_for_the_steps_of_other_requests(self):
        task = {"fallback_url": "https://a.example/b", "predictor": "p.npz", "steps": [LOCAL]}
        assert refused(t=task)[0] == "$.t.fallback_url"
        assert parse_rules(json.dumps({"t": task}).encode(), in_code=True).tasks["t"].fallback_url

    def test_built_in_steps_are_named(self):
        path, reason = refused(financial_report={"side": "local"})
        assert path == "$.financial_report.side"
        assert "'indicators'" in reason
        assert refused(financial_report={"privacy": "high"})[0] == "$.financial_report.privacy"

    def test_alternatives_are_capabilities(self):
        step = {"name": "x", "side": "cloud", "alternatives": ["n/y", "n/z"]}
        found = parsed(t={"steps": [step]}, builtin=False).capabilities
        assert found == (("cloud", "n/y"), ("cloud", "n/z"), ("cloud", "x"))

    def test_steps_take_cache_and_latency_from_their_task(self):
        task = parsed(t={"cache": True, "latency_ms": 200, "steps": [AUTO, {"name": "y", "cache": False}]})
        assert [(step.cache, step.latency_ms) for step in task.tasks["t"].steps] == [
            (True, 200),
            (False, 200),
        ]


class TestMerges:
    @pytest.mark.parametrize(
        ("strategy", "steps", "key"),
        [
            ("weighted_fusion", [{"weight": 0}, {"weight": 0}], "merge"),
            ("majority_vote", [{"weight": 0}, {"weight": 0}], "merge"),
            ("weighted_fusion", [{}, {"priority": 2}], "steps[1].priority"),
            ("collect", [{"weight": 0.5}, {}], "steps[0].weight"),
            ("priority_override", [{"priority": 1}, {"weight": 1}], "steps[1].weight"),
            ("priority_override", [{"side": "cloud"}, {"side": "cloud"}], "merge"),
        ],
    )
    def test_weights_that_do_not_fit(self, strategy, steps, key):
        named = [{"name": f"s{index}", **step} for index, step in enumerate(steps)]
        path, reason = refused(t={"steps": named, "merge": {"strategy": strategy}})
        assert path == f"$.t.{key}"
        assert "weight" in reason or "priority" in reason

    def test_a_weight_that_nothing_merges(self):
        assert "nothing is merged" in refused(t={"steps": [{"name": "a", "weight": 1}]})[1]

    def test_strangers_may_read_what_they_like(self):
        steps = [{"name": "a", "weight": 0, "priority": 1}, {"name": "b", "weight": 0}]
        assert parsed(t={"steps": steps, "merge": {"strategy": "mine"}})

    def test_sides_rank_where_no_priority_does(self):
        assert parsed(t={"steps": [LOCAL, CLOUD], "merge": {"strategy": "priority_override"}})


class TestMoney:
    def test_a_paid_target_without_an_upper_bound(self):
        path, reason = refused(**PRICED, prices={"cloud/n/a": {"per_1k_tokens": 0.5}})
        assert path == '$.prices["cloud/n/a"]'
        assert "upper bound" in reason
        assert "max_tokens" in reason

    @pytest.mark.parametrize(
        ("price", "bound"),
        [
            ({"per_call": 0.1}, 0.1),
            ({"per_call": 0.1, "per_1k_tokens": 0.2, "max_tokens": 500}, 0.2),
            ({"per_1k_tokens": 5, "max_cost": 0.4}, 0.4),
            ({}, 0.0),
        ],
    )
    def test_bounds(self, price, bound):
        found = parsed(**PRICED, prices={"cloud/n/a": price}).prices["cloud/n/a"]
        assert found.bound == pytest.approx(bound)

    @pytest.mark.parametrize(
        ("name", "words"),
        [
            ("cloud/n/aa", "'cloud/n/a'"),
            ("n/a", "SIDE/CAPABILITY"),
            ("edge/zz", "known are cloud/n/a, local/n/a"),
        ],
    )
    def test_prices_of_nothing(self, name, words):
        assert words in refused(**PRICED, prices={name: {}})[1]

    def test_a_call_above_its_bound(self):
        assert "max_cost" in refused(**PRICED, prices={"cloud/n/a": {"per_call": 2, "max_cost": 1}})[1]

    @pytest.mark.parametrize(
        ("said", "path"),
        [
            ({"budget": {"per_day": 5}, "tenants": {"a": {"per_day": 6}}}, "$.tenants.a.per_day"),
            ({"budget": {"per_day": 5, "per_tenant": 6}}, "$.budget.per_tenant"),
            ({"tenants": {"a": {"per_day": 6}}}, "$.tenants.a.per_day"),
            ({"tenants": {"a b": {}}}, '$.tenants["a b"]'),
            ({"tenants": {"a": {"privacy": "low"}}}, "$.tenants.a.privacy"),
            ({"tenants": {"a": {"perday": 1}}}, "$.tenants.a.perday"),
            ({"budget": {"perday": 1}}, "$.budget.perday"),
            ({"prices": {"cloud/x": {"per_cal": 1}}}, '$.prices["cloud/x"].per_cal'),
        ],
    )
    def test_ceilings(self, said, path):
        assert refused(**said)[0] == path

    def test_a_budget_without_a_limit_only_counts(self):
        found = parsed(budget={}, tenants={"a": {"per_day": 1}})
        assert found.budget is not None
        assert (found.budget.per_day, found.tenants["a"].per_day) == (None, 1)


class TestNames:
    @pytest.mark.parametrize(
        "host",
        [
            "a.example",
            "*.a.example",
            "A-1.example:8443",
            "localhost",
            "10.0.0.1:80",
            "[::1]",
            "[::1]:8080",
            "a.",
        ],
    )
    def test_hosts(self, host):
        assert parsed(hosts=[host]).hosts == (host.lower(),)

    @pytest.mark.parametrize(
        "host",
        [
            "https://a.example",
            "a.example/path",
            "*",
            "a.*.example",
            "*a.example",
            "a.example:0",
            "a.example:99999",
            "a.example:port",
            "a b",
            "-a.example",
            "münchen.example",
            "user@a.example",
            "[::1",
            "[::1]x",
            "::1",
            "",
        ],
    )
    def test_no_hosts(self, host):
        assert refused(hosts=["ok.example", host])[0] == "$.hosts[1]"

    def test_a_host_twice(self):
        assert "twice" in refused(hosts=["a.example", "A.example"])[1]

    @pytest.mark.parametrize(
        "url",
        [
            "https://",
            "http://:80/",
            "http://a.example:/",
            "http://a b/",
            "http://[::1]:0/",
            "http://?x",
            "https://a.example:99999/",
            "https://[::1/",
            "https://me:key@a.example/",
        ],
    )
    def test_urls_that_lead_nowhere(self, url):
        assert refused(t={"fallback_url": url})[0] == "$.t.fallback_url"

    @pytest.mark.parametrize(
        "url", ["http://caption_service:8080?k=a@b", "https://[::1]/x", "https://例え.jp/"]
    )
    def test_urls(self, url):
        assert parsed(t={"fallback_url": url}).tasks["t"].fallback_url == url

    def test_two_urls_of_one_capability(self):
        one, other = {"fallback_url": "https://a.example/"}, {"fallback_url": "https://b.example/"}
        path, reason = refused(a=one, b={**other, "capability": "a"})
        assert path == "$.b.fallback_url"
        assert "'a'" in reason
        assert parsed(a=one, b={**one, "capability": "a"}, c=other)
        keyed = {**one, "capability": "a", "fallback_headers": {"x-key": "A_KEY"}}
        assert refused(a=one, b=keyed)[0] == "$.b.fallback_headers"
        assert parsed(a={**one, "fallback_headers": {"x-key": "A_KEY"}}, b=keyed)

    @pytest.mark.parametrize("headers", [{"x key": "A"}, {"": "A"}, {"x": "A B"}, {"x": "$A"}, {"x": 1}])
    def test_headers_are_names_of_variables(self, headers):
        path, _ = refused(t={"fallback_url": "https://a.example/", "fallback_headers": headers})
        assert path.startswith("$.t")

    @pytest.mark.parametrize(
        ("said", "path"),
        [
            ({"apps": ["my app"]}, "$.apps[0]"),
            ({"apps": ["a.py", "a.py"]}, "$.apps[1]"),
            ({"decomposers": ["pkg..mod"]}, "$.decomposers[0]"),
            ({"decomposers": [""]}, "$.decomposers[0]"),
            ({"privacy": {"detectors": ["formats", " "]}}, "$.privacy.detectors[1]"),
            ({"privacy": {"detectors": ["formats", "formats"]}}, "$.privacy.detectors[1]"),
            ({"privacy": {"mask": ["Person!"]}}, "$.privacy.mask[0]"),
            ({"privacy": {"mask": ["person"], "ignore": ["person"]}}, "$.privacy.mask[0]"),
            ({"privacy": {"mask": ["person"], "detectors": []}}, "$.privacy.mask"),
            ({"privacy": {"detector": []}}, "$.privacy.detector"),
            ({"cache_s": -1}, "$.cache_s"),
            ({"stale_s": 300}, "$.stale_s"),
            ({"cache_s": 60, "stale_s": 60}, "$.stale_s"),
            ({"stale_s": -1}, "$.stale_s"),
            ({"tasks": {"t": {"stale_s": 10}}}, "$.tasks.t.stale_s"),
        ],
    )
    def test_modules_detectors_and_kinds(self, said, path):
        assert refused(**said)[0] == path


class TestStandIns:
    @pytest.mark.parametrize(
        "said",
        [
            {"stale_s": 301},
            {"cache_s": 0, "stale_s": 1},
            {"stale_s": 0, "tasks": {"t": {"stale_s": 400}}},
            {"cache_s": 60, "stale_s": 61, "tasks": {"t": {"stale_s": 0}}},
        ],
    )
    def test_older_than_what_is_given_anyway_or_none(self, said):
        rules = parse_rules(json.dumps(said).encode())
        assert rules.stale_s == said.get("stale_s", 0)

    def test_the_reason_tells_both_and_the_mend(self):
        path, reason = refused(stale_s=100)
        assert path == "$.stale_s"
        assert "`stale_s` 100 is not above `cache_s` 300" in reason
        assert "or 0" in reason

    def test_steps_given_in_code_do_not_know_the_file(self):
        raw = b'{"builtin": false, "tasks": {"t": {"stale_s": 100, "steps": [{"name": "a"}]}}}'
        assert parse_rules(raw, in_code=True).tasks["t"].stale_s == 100


class TestPhrases:
    @pytest.mark.parametrize(
        "phrase",
        ["生成 财报 分析", "生成财报分析 "],
    )
    def test_spaces_beside_chinese_make_no_other_phrase(self, phrase):
        path, reason = refused(mine={"phrases": [phrase]})
        assert path == "$.mine.phrases[0]"
        assert "'financial_report'" in reason

    def test_one_within_another_is_no_tie(self):
        assert parsed(a={"phrases": ["report"]}, b={"phrases": ["annual report"]})


class TestPlaces:
    def test_each_independent_part_has_its_own_first_problem(self):
        raw = (
            b'{"tasks": {"a": {"side": "edge", "slow_ms": 0},\n'
            b'"b": {"steps": [{"name": "x", "after": ["x"]}]},\n'
            b'"c": {}},\n"hosts": ["*"],\n"cache_s": -1,\n"nonsense": 1}'
        )
        found = problems(raw)
        assert list(found) == [
            "$.tasks.a.side",
            "$.tasks.b.steps[0].after",
            "$.hosts[0]",
            "$.cache_s",
            "$.nonsense",
        ]

    def test_reading_ends_with_twenty_problems(self):
        raw = json.dumps({f"t{number}": {"side": "edge"} for number in range(1000)}).encode()
        assert len(problems(raw)) == 20

    def test_bounds_of_the_whole(self):
        assert "more than" in problems(b" " * (2**20 + 1))["$"]
        chain = [{"name": f"s{number}"} for number in range(257)]
        assert refused(t={"steps": chain})[0] == "$.t.steps"

    @pytest.mark.parametrize(
        ("raw", "place"),
        [
            (b'{"a": {},\n"b": {"side": "local",\n"side": "cloud"}}', "$.b.side (line 3)"),
            (b'{"a": {},\n"b": {"slow_ms": NaN}}', "$.b.slow_ms (line 2)"),
            (b'{"a":\n{"phrases": ["x", "\\ud800"]}}', "$.a.phrases[1] (line 2)"),
            (b'{"a": {"priority":\n' + b"9" * 5000 + b"}}", "$.a.priority (line 2)"),
            (b'{"a":\n' + b"[" * 40 + b"]" * 40 + b"}", "(line 2)"),
            (b'{"a": {},\n\n"b" {}}', "$ (line 3)"),
            (b'{"a": {},\n\xff}', "$ (line 2)"),
        ],
    )
    def test_what_python_alone_would_read(self, raw, place):
        with pytest.raises(RulesError, match=re.escape(place)):
            parse_rules(raw)


KEYS = st.sampled_from(
    [
        "after",
        "name",
        "side",
        "steps",
        "inputs",
        "weight",
        "priority",
        "phrases",
        "merge",
        "alternatives",
        "cache",
    ]
)
NAMES = st.sampled_from(["a", "b", "c", "n/a"])
STEPS = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from("abcd")},
        optional={
            "after": st.lists(st.sampled_from("abcd"), max_size=2),
            "side": st.sampled_from(["local", "cloud", "auto"]),
            "weight": st.sampled_from([0, 1]),
            "inputs": st.dictionaries(NAMES, st.sampled_from(["query", "steps.a", "steps.b.k", "inputs.x"])),
            "alternatives": st.lists(NAMES, max_size=2),
        },
    ),
    max_size=4,
)
TASKS = st.fixed_dictionaries(
    {},
    optional={
        "steps": STEPS,
        "side": st.sampled_from(["local", "cloud", "auto"]),
        "privacy": st.sampled_from(["normal", "high"]),
        "merge": st.fixed_dictionaries({"strategy": st.sampled_from(["weighted_fusion", "collect", "mine"])}),
        "fallback_url": st.sampled_from(["https://a.example/b", "ftp://x"]),
        "predictor": st.just("p.npz"),
        "slow_ms": st.sampled_from([1, 500]),
        "deadline_ms": st.sampled_from([100, 1000]),
    },
)
FILES = st.dictionaries(
    st.sampled_from(["a", "b", "financial_report"]), TASKS, max_size=3
) | st.fixed_dictionaries(
    {"tasks": st.dictionaries(NAMES, TASKS, max_size=2)},
    optional={
        "prices": st.dictionaries(st.sampled_from(["cloud/a", "local/b", "a"]), JSON_VALUES, max_size=2),
        "tenants": st.dictionaries(st.sampled_from(["acme", "a b"]), JSON_VALUES, max_size=2),
        "hosts": st.lists(st.text(max_size=5) | st.just("a.example"), max_size=2),
        "privacy": JSON_VALUES,
    },
)


@given(FILES)
def test_accepted_rules_are_acyclic_and_without_contradiction(said):
    raw = json.dumps(said, indent=1).encode()
    found = read(raw)
    if isinstance(found, RulesError):
        assert found.problems
        assert all(one.path.startswith("$") and one.reason for one in found.problems)
        assert all(1 <= one.line <= raw.count(b"\n") + 1 for one in found.problems)
        return
    for task in found.tasks.values():
        seen: set[str] = set()
        left = list(task.steps)
        while ready := [step for step in left if seen.issuperset(step.after)]:
            seen.update(step.name for step in ready)
            left = [step for step in left if step.name not in seen]
        assert not left
        if task.privacy == "high":
            assert all(step.side != "cloud" for step in task.steps)
        for step in task.steps:
            sides = {"local", "cloud"} if step.side == "auto" else {step.side}
            names = (step.capability, *step.alternatives)
            assert {(side, name) for side in sides for name in names} <= set(found.capabilities)


@given(st.integers(0, len(ORIGINAL)), st.binary(max_size=3), st.integers(0, 5))
def test_a_damaged_file_is_rules_or_refused_with_a_line(at, put, cut):
    found = read(ORIGINAL[:at] + put + ORIGINAL[at + cut :])
    assert found.problems if isinstance(found, RulesError) else found.tasks


class TestDetectorsOfATask:
    def test_are_kept(self):
        task = '{"detectors": ["formats"], "ignore": ["date"]}'
        raw = f'{{"tasks": {{"t": {task}}}, "privacy": {{"mask": ["email"]}}}}'.encode()
        rules = parse_rules(raw)
        found = rules.tasks["t"].examination(rules.privacy)
        assert (found.detectors, found.mask, found.ignore) == (("formats",), ("email",), ("date",))
        assert rules.tasks["traffic_forecast"].examination(rules.privacy) is rules.privacy
        assert rules.tasks["financial_report"].ignore == ("date", "organization")

    @pytest.mark.parametrize(
        ("entry", "path"),
        [
            ('"detectors": ["names", "names"]', "tasks.t.detectors[1]"),
            ('"detectors": [" names"]', "tasks.t.detectors[0]"),
            ('"ignore": ["A date"]', "tasks.t.ignore[0]"),
        ],
    )
    def test_are_checked(self, entry, path):
        with pytest.raises(RulesError, match=path.replace("[", r"\[")):
            parse_rules(f'{{"tasks": {{"t": {{{entry}}}}}}}'.encode())
