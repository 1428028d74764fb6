"""Requests of all degrees of privacy under kills; every record of the cloud's topics is then read back."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from edgeway.rules_of import rules_of
from schemas.parts import Examination
from schemas.topics import capability_topic
from streams.privacy.examiner import examiner_of
from streams.settings import Settings
from tests.faults.harness.cluster import Cluster, cluster
from tests.faults.harness.collector import Collector
from tests.faults.harness.load import Sent
from tests.faults.harness.plants import Payload
from tests.faults.harness.private_load import MASKED, TENANT, PrivateLoad
from tests.faults.harness.report import Report
from tests.faults.harness.runs import Size, judge, kill_as_it_goes, under_load
from tests.faults.harness.topic_records import read_topic
from tests.helpers.endpoint import Asked as Posted
from tests.helpers.endpoint import Endpoint, Reply, endpoint

APP = Path(__file__).resolve().parents[2] / "app" / "private.py"
EVERY = 250
MOST_OPEN = 200
LOCAL = ("private/answer", "private/caption", "private/reveal")
CLOUD = ("private/answer", "private/only", "private/caption")
NAME = re.compile(r"r-\d+")


def rules(url: str) -> dict[str, Any]:
    """A task for each way to the cloud: escalation, a fixed side, `fallback_url`, a step fed by another."""

    def chain(reference: str) -> dict[str, Any]:
        first = {
            "name": "first",
            "capability": "private/reveal",
            "side": "local",
            "inputs": {"n": "inputs.n"},
        }
        second = {"name": "second", "capability": "private/only", "side": "cloud", "after": ["first"]}
        return {"steps": [first, {**second, "inputs": {"text": reference}}]}

    return {
        "apps": [str(APP)],
        "builtin": False,
        "privacy": {"mask": list(MASKED)},
        "tenants": {TENANT: {"privacy": "high"}},
        "tasks": {
            "ask": {"capability": "private/answer", "local_threshold": 0.9, "on_slow": "wait"},
            "guarded": {"capability": "private/answer", "local_threshold": 0.9, "privacy": "high"},
            "cloud": {"capability": "private/only", "side": "cloud"},
            "caption": {"capability": "private/caption", "local_threshold": 0.7, "fallback_url": url},
            "chain": chain("steps.first.text"),
            "plain_chain": chain("steps.first.plain"),
        },
    }


async def privacy(folder: Path, size: Size) -> Report:
    """A SIGKILL of a random role at every 250th request, of few at each quarter; `fallback_url` leads to a
    real server here.
    """
    servers = endpoint()
    server = next(servers)
    server.reply = _reply
    path = folder / "rules.json"
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(rules(server.url + "/caption")), encoding="utf-8")
    load = PrivateLoad(size.seed, size.deadline_ms)
    try:
        async with cluster(folder, rules=path) as at:
            names = [at.worker("local", number, LOCAL) for number in range(2)]
            names += [at.worker("cloud", number, CLOUD) for number in range(2)]
            names += [at.aggregator(), at.router()]
            await at.ready(names)

            async def faults(at: Cluster, sent: Sent) -> None:
                every = min(EVERY, size.requests // 4)
                await kill_as_it_goes(at, names, sent, size.requests, every, size.seed)

            def look(report: Report, collector: Collector) -> None:
                _answers(report, load, collector)

            report = await under_load(
                "privacy",
                at,
                size,
                faults,
                requests=load.requests(),
                tasks=("plain_chain",),
                judge_answers=look,
                most_open=MOST_OPEN,
            )
            judge(report, ok_share=0.0)
            await _audit(report, at, load, server)
            return report
    finally:
        next(servers, None)


def _reply(call: Posted) -> Reply:
    text = msgspec.json.decode(call.body)["text"]
    return Reply(body=msgspec.json.encode({"output": {"seen": text}, "confidence": 0.9}))


def _answers(report: Report, load: PrivateLoad, collector: Collector) -> None:
    """Those that were masked must have come back with what the masks stood for."""
    restored = Counter[bool]()
    for name, asked in load.asked.items():
        found = collector.answers.get(name)
        if asked.kind == "masked" and found and found[0].side == "cloud":
            restored[found[0].said == hash(("ok", repr({"seen": asked.text}), None))] += 1
    report.more["masked_by_the_cloud_and_restored"] = restored[True]
    report.expect(
        restored[False] == 0, f"{restored[False]} masked answers came back otherwise than they went"
    )
    report.expect(restored[True] > 0, "no masked request was answered by the cloud")
    kinds = Counter(asked.kind for asked in load.asked.values())
    report.more["asked"] = dict(sorted(kinds.items()))
    plain = [
        collector.answers[name][0]
        for name, asked in load.asked.items()
        if asked.kind == "plain" and name in collector.answers
    ]
    report.more["plain_by_the_cloud"] = f"{sum(answer.side == 'cloud' for answer in plain)} of {len(plain)}"


async def _audit(report: Report, at: Cluster, load: PrivateLoad, server: Endpoint) -> None:
    """Everything that went to the cloud, by an oracle of its own, and by the examiner once more."""
    examination = rules_of(Settings(rules=at.rules)).privacy
    counts: Counter[str] = Counter()
    marked: Counter[str] = Counter()
    for capability in CLOUD:
        async for record in read_topic(at.bootstrap, capability_topic("cloud", capability)):
            said = msgspec.msgpack.decode(record.value or b"")
            counts["records"] += 1
            _examine(load, said["id"], [said.get("inputs"), said.get("params")], examination, counts, marked)
    for call in server.calls:
        inputs = msgspec.json.decode(call.body)
        params = inputs.pop("params", {})
        counts["posts"] += 1
        subtask = call.headers["idempotency-key"]
        _examine(load, subtask, [inputs, params], examination, counts, marked)
    report.more["cloud"] = dict(counts)
    report.more["cloud_by_kind"] = {name: count for name, count in sorted(counts.items()) if ":" in name}
    report.more["marked_spans_of_other_kinds_seen"] = dict(marked.most_common())
    report.expect(counts["declared"] == 0, f"{counts['declared']} declared requests were in the cloud")
    report.expect(counts["planted"] == 0, f"{counts['planted']} payloads with planted data were in the cloud")
    report.expect(
        counts["detected"] == 0, f"{counts['detected']} payloads in the cloud are detected as private"
    )
    report.expect(
        counts["records"] >= 0.2 * report.requests, f"only {counts['records']} records of the cloud"
    )
    report.expect(counts["posts"] > 0, "the endpoint was never asked")


def _examine(
    load: PrivateLoad,
    subtask: str,
    parts: list[Any],
    examination: Examination,
    counts: Counter[str],
    marked: Counter[str],
) -> None:
    name = NAME.search(subtask)
    if name is None:
        return  # of the warm-up
    asked = load.asked[name.group()]
    payload = Payload(*parts)
    counts[f"of:{asked.kind}"] += 1
    counts["declared"] += asked.declared
    counts["planted"] += any(payload.has(planted) for planted in asked.planted)
    verdict = examiner_of(examination).examine(*parts)
    counts["detected"] += verdict.level != "normal"
    counts.update(f"detected:{asked.kind}:{reason}" for reason in verdict.reasons)
    marked.update({kind for kind, value in asked.marked if payload.has(value)})
