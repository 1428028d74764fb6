"""What came of a scenario, read off the log."""

from __future__ import annotations

import dataclasses
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from schemas.codec import decode
from schemas.errors import Malformed
from schemas.messages import Checkpoint, JoinEvent, Partial, Plan
from tests.faults.harness.cluster import PARTITIONS, Cluster, Fault
from tests.faults.harness.collector import Answer
from tests.faults.harness.load import Sent
from tests.faults.harness.topic_records import read_topic

GRACE_MS = 1_000
"""A promise of the architecture: an answer by the deadline plus one second."""
MOST_UNWELL = 10
TAKEOVER_S = 20.0
SOON_MS = 1_000


@dataclass(slots=True)
class Report:
    """Figures of one scenario. Latencies in ms from the request's append to its first result's."""

    scenario: str = ""
    requests: int = 0
    answered: int = 0
    ok: int = 0
    partial: int = 0
    error: int = 0
    approximate: int = 0
    lost: int = 0
    late: int = 0
    latest_ms: int = 0
    duplicate_results: int = 0
    contradicting: int = 0
    extra_plans: int = 0
    extra_subtasks: int = 0
    extra_partials: int = 0
    checkpoints: int = 0
    dead_letters: dict[str, int] = field(default_factory=dict)
    errors: dict[str, int] = field(default_factory=dict)
    p50_ms: float = 0.0
    p95_ms: float = 0.0
    p99_ms: float = 0.0
    max_ms: float = 0.0
    rate: float = 0.0
    faults: list[dict[str, Any]] = field(default_factory=list)
    longest_gap_s: dict[str, float] = field(default_factory=dict)
    slowest_s: dict[str, float] = field(default_factory=dict)
    unasked_exits: dict[str, list[int]] = field(default_factory=dict)
    unwell: list[str] = field(default_factory=list)
    more: dict[str, Any] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def expect(self, holds: bool, what: str) -> None:
        """Note `what` as wrong unless it `holds`."""
        if not holds:
            self.wrong.append(what)

    def as_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


async def report_of(
    scenario: str,
    at: Cluster,
    sent: Sent,
    answers: Mapping[str, Sequence[Answer]],
    deadlines: Mapping[str, int] | int,
    prefixes: tuple[str, ...] = ("r-",),
) -> Report:
    """Count everything. `deadlines` in ms, one for all or by id; an id counts that begins with a prefix."""
    accepted = await _accepted(at.bootstrap, prefixes)
    report = Report(scenario=scenario, requests=len(accepted))
    report.more["acknowledged_but_not_in_the_log"] = len(
        {name for name in sent.acknowledged if name.startswith(prefixes)} - accepted.keys()
    )
    took: dict[str, int] = {}
    for name, at_ms in accepted.items():
        found = answers.get(name, ())
        if not found:
            report.lost += 1
            continue
        took[name] = found[0].at - at_ms
        allowed = deadlines if isinstance(deadlines, int) else deadlines[name]
        over = took[name] - allowed
        report.late += over > GRACE_MS
        report.latest_ms = max(report.latest_ms, over)
        _count_answers(report, found)
        if found[0].code is not None and len(report.unwell) < MOST_UNWELL:
            since = at_ms / 1000 - (at.faults[0].at if at.faults else sent.began)
            report.unwell.append(f"{name}, asked {since:+.1f} s from the fault: {found[0].why}")
    report.answered = len(took)
    _latencies(report, list(took.values()))
    if sent.ended > sent.began:
        report.rate = round(len(accepted) / (sent.ended - sent.began), 1)
    await _count_repetitions(report, at.bootstrap, prefixes)
    _takeovers(report, at.faults, accepted, took, answers)
    report.unasked_exits = {c.name: c.unasked for c in at.children.by_name.values() if c.unasked}
    return report


async def _accepted(bootstrap: str, prefixes: tuple[str, ...]) -> dict[str, int]:
    """Append time by id: our load keys its requests by their ids."""
    found: dict[str, int] = {}
    async for record in read_topic(bootstrap, "requests"):
        name = (record.key or b"").decode("utf-8", "replace")
        if name.startswith(prefixes):
            found.setdefault(name, record.timestamp)
    return found


def _count_answers(report: Report, found: Sequence[Answer]) -> None:
    first = found[0]
    report.ok += first.status == "ok"
    report.partial += first.status == "partial"
    report.error += first.status == "error"
    report.approximate += first.approximate
    report.duplicate_results += len(found) - 1
    report.contradicting += any(other.said != first.said for other in found[1:])
    if first.code is not None:
        report.errors[first.code] = report.errors.get(first.code, 0) + 1


def _latencies(report: Report, took: list[int]) -> None:
    took.sort()
    if took:
        report.p50_ms, report.p95_ms, report.p99_ms = (
            float(took[min(len(took) - 1, int(len(took) * share))]) for share in (0.5, 0.95, 0.99)
        )
        report.max_ms = float(took[-1])


async def _count_repetitions(report: Report, bootstrap: str, prefixes: tuple[str, ...]) -> None:
    """Plans and partials beyond the first on `joins`, subtasks beyond the first on the worker topics."""
    plans: Counter[str] = Counter()
    partials: Counter[str] = Counter()
    async for record in read_topic(bootstrap, "joins"):
        if not (record.key or b"").decode("utf-8", "replace").startswith(prefixes):
            continue
        try:
            event: Plan | Partial | Checkpoint = decode(record.value or b"", JoinEvent)
        except Malformed:
            continue
        if isinstance(event, Plan):
            plans[event.request.id] += 1
        elif isinstance(event, Partial):
            partials[event.subtask] += 1
        else:
            report.checkpoints += 1
    subtasks: Counter[str] = Counter()
    for topic in ("local.fault.light", "cloud.fault.light", "local.fault.step", "cloud.fault.step"):
        async for record in read_topic(bootstrap, topic):
            if (record.key or b"").decode().startswith(prefixes):
                subtasks[f"{topic} {(record.key or b'').decode()}"] += 1
    report.extra_plans, report.extra_partials, report.extra_subtasks = (
        sum(counter.values()) - len(counter) for counter in (plans, partials, subtasks)
    )
    letters: Counter[str] = Counter()
    async for record in read_topic(bootstrap, "dead-letters"):
        letters[dict(record.headers).get("edgeway_dead_letter_error", b"?").decode()] += 1
    report.dead_letters = dict(letters)


def _takeovers(
    report: Report,
    faults: Sequence[Fault],
    accepted: Mapping[str, int],
    took: Mapping[str, int],
    answers: Mapping[str, Sequence[Answer]],
) -> None:
    """After each fault: the longest silence of a partition of `results`, the slowest request of that time.

    A silence counts from the fault or the last result before it; partitions with little load have long ones.
    """
    lanes: list[list[int]] = [[] for _ in range(PARTITIONS)]
    for found in answers.values():
        for answer in found:
            lanes[answer.partition].append(answer.at)
    for lane in lanes:
        lane.sort()
    arrivals = sorted((at_ms, took[name]) for name, at_ms in accepted.items() if name in took)
    for number, fault in enumerate(faults):
        begin = int(fault.at * 1000)
        after = faults[number + 1].at if number + 1 < len(faults) else fault.at + TAKEOVER_S
        end = int(min(after, fault.at + TAKEOVER_S) * 1000)
        gap = max((_longest_gap(lane, begin, end) for lane in lanes), default=0) / 1000
        slowest = max((ms for at_ms, ms in arrivals if begin - 500 <= at_ms < end), default=0) / 1000
        report.faults.append(
            {
                "kind": fault.kind,
                "name": fault.name,
                "at": round(fault.at, 1),
                "gap_s": gap,
                "slowest_s": slowest,
            }
        )
        kind = f"{fault.kind} {fault.name.rpartition('-')[0] or fault.name}"
        report.longest_gap_s[kind] = max(gap, report.longest_gap_s.get(kind, 0.0))
        report.slowest_s[kind] = max(slowest, report.slowest_s.get(kind, 0.0))


def _longest_gap(stamps: Sequence[int], begin: int, end: int) -> int:
    """Of the silences that begin soon after `begin`: a later one belongs to the next fault."""
    longest, previous = 0, begin
    for stamp in stamps[bisect_left(stamps, begin) :]:
        longest = max(longest, stamp - previous)
        if stamp >= min(begin + SOON_MS, end):
            break
        previous = stamp
    return longest
