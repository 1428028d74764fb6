from __future__ import annotations

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas import topics
from schemas.errors import UnknownTopic
from schemas.rules import parse_rules

CAPABILITIES = st.from_regex(
    r"[A-Za-z0-9][A-Za-z0-9_-]{0,8}(/[A-Za-z0-9][A-Za-z0-9_-]{0,8}){0,3}", fullmatch=True
)
SIDES = st.sampled_from(["local", "cloud"])


@given(SIDES, CAPABILITIES)
def test_a_name_has_one_topic(side, capability):
    topic = topics.capability_topic(side, capability)
    assert topics.parse_capability_topic(topic) == (side, capability)
    assert topics.is_cloud(topic) == (side == "cloud")
    assert topics.group_of(topic) == f"edgeway.{topic}"


def test_one_name_everywhere():
    assert topics.capability_topic("local", "nlp/summarize") == "local.nlp.summarize"


@pytest.mark.parametrize(
    "capability",
    ["", "/", "a/", "/a", "a//b", "a.b", "a b", "财报", "a\n", "-a", "_a", "x" * 245, "../a", "a/../b"],
)
def test_names_that_make_no_topic(capability):
    with pytest.raises(UnknownTopic):
        topics.capability_topic("local", capability)


@pytest.mark.parametrize("side", ["edge", "", "auto", "Local"])
def test_sides_that_make_no_topic(side):
    with pytest.raises(UnknownTopic):
        topics.capability_topic(side, "a")


@given(st.text())
def test_any_text_is_a_topic_of_a_capability_or_unknown(text):
    for topic in (text, f"cloud.{text}"):
        try:
            side, capability = topics.parse_capability_topic(topic)
        except UnknownTopic:
            continue
        assert topics.capability_topic(side, capability) == topic


@pytest.mark.parametrize("topic", ["local", "local.", "requests", "cloud", "edge.a", "local.a/b", "local..a"])
def test_other_topics_are_of_no_capability(topic):
    with pytest.raises(UnknownTopic):
        topics.parse_capability_topic(topic)


def test_groups():
    assert topics.group_of("router") == topics.group_of("requests") == "edgeway.router"
    assert topics.group_of("aggregator") == topics.group_of("joins") == "edgeway.aggregator"
    with pytest.raises(UnknownTopic):
        topics.group_of("results")


def test_reply_topics():
    assert topics.reply_topic("mobile") == topics.reply_topic("results.mobile") == "results.mobile"
    for wrong in ("", "results.", "a b", "results", "x" * 250, "a..b"):
        if wrong == "results":
            assert topics.reply_topic(wrong) == "results.results"
            continue
        with pytest.raises(UnknownTopic):
            topics.reply_topic(wrong)


@given(st.binary(), st.integers(1, 50))
def test_partitions(key, count):
    assert topics.partition_for(key, count) == (zlib.crc32(key) & 0xFFFFFFFF) % count


def test_the_table():
    rules = parse_rules(b'{"reply_topics": ["mobile"], "builtin": false, "tasks": {"nlp/intent": {}}}')
    found = {spec.name: spec for spec in topics.topics_for(rules, 12)}
    assert set(found) == {
        "requests",
        "joins",
        "results",
        "dead-letters",
        "capabilities",
        "feedback",
        "cancellations",
        "results.mobile",
        "local.nlp.intent",
        "cloud.nlp.intent",
    }
    assert found["results"].partitions == found["joins"].partitions == found["requests"].partitions == 12
    assert found["local.nlp.intent"].partitions == found["results.mobile"].partitions == 12
    assert (found["capabilities"].partitions, found["dead-letters"].partitions) == (1, 3)
    assert found["capabilities"].retention_ms == 600_000
    assert found["dead-letters"].retention_ms == 30 * 86_400_000
    assert found["joins"].retention_ms == 7 * 86_400_000
    # A dead letter carries the original and headers beside it.
    assert found["dead-letters"].max_message_bytes > found["requests"].max_message_bytes == 2 * 2**20
    assert {spec.timestamp_type for spec in found.values()} == {"LogAppendTime"}
