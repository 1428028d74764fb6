"""The whole of Edgeway on a real Kafka and a real Redis, as it is run: what the end-to-end tests ask."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.docker import ROOT
from tests.helpers.kafka import Kafka, delete_topic
from tests.helpers.redis import RedisServer
from tests.helpers.redis import serve as serve_redis
from tests.helpers.roles import Role, command

PARTITIONS = 3
DEMO = ROOT / "examples" / "demo"
REPLY = "results.app"
NO_TOPIC = "local.test.topicless"
NO_REPLY_TOPIC = "results.gone"


def rules() -> dict[str, Any]:
    """The demo's rules, and tasks that end badly: none of `test/*` has a worker."""
    said = json.loads((DEMO / "rules.json").read_text(encoding="utf-8"))
    said["apps"] = [str(DEMO / "app.py")]
    said["tasks"]["intent"]["predictor"] = str(DEMO / said["tasks"]["intent"]["predictor"])
    said["reply_topics"] = [REPLY, NO_REPLY_TOPIC]
    asleep = {"name": "asleep", "capability": "test/asleep", "side": "local"}
    known = {"name": "known", "capability": "nlp/intent", "side": "local"}
    said["tasks"] |= {
        "nowhere": {"capability": "test/nowhere"},
        "asleep": {"steps": [asleep], "scale_to_zero": True},
        "half": {"steps": [known, asleep], "scale_to_zero": True},
        "topicless": {"capability": "test/topicless", "side": "local", "scale_to_zero": True},
        "only_cloud": {"steps": [{"name": "only", "capability": "nlp/intent", "side": "cloud"}]},
    }
    return dict(said)


def write_rules(folder: Path) -> Path:
    path = folder / "rules.json"
    path.write_text(json.dumps(rules()), encoding="utf-8")
    return path


@dataclass
class Spine:
    """A Kafka with its topics, and the roles that run on it."""

    cluster: Kafka
    folder: Path
    rules: Path
    redis: RedisServer | None = None
    roles: list[Role] = field(default_factory=list)

    @property
    def kafka(self) -> str:
        return self.cluster.bootstrap

    def apply(self, replication: int = 1) -> None:
        words = ("--partitions", str(PARTITIONS), "--replication", str(replication), "--fix")
        done = command("topics", "apply", "--kafka", self.kafka, "--rules", str(self.rules), *words)
        assert done.returncode == 0, done.stdout + done.stderr

    def start(self, *words: str, rules: Path | None = None) -> Role:
        """One more role of this spine; it may not be ready yet."""
        more = ("--redis", self.redis.url) if self.redis is not None else ()
        about = ("--kafka", self.kafka, "--rules", str(rules or self.rules), "--log-format", "text")
        role = Role(self.folder, *words, *about, *more)
        self.roles.append(role)
        return role.start()

    def audit(self, *words: str) -> tuple[int, dict[str, Any]]:
        """Exit code and report of `edgeway audit` over all that was asked."""
        done = command("audit", "--kafka", self.kafka, "--since", "1h", "--json", *words)
        return done.returncode, json.loads(done.stdout)

    def stop(self) -> None:
        """Stop the roles in order; each must have ended well, and left no request without an answer."""
        try:
            ended = [(role, role.terminate()) for role in reversed(self.roles) if role.runs]
            for role, code in ended:
                assert code == 0, f"ended with {code}:\n{role.said}"
            report = self.audit()[1]
            assert (report["unanswered"], report["waiting"]) == ([], 0), report
        finally:
            for role in self.roles:
                role.kill()


def serve_up(kafka: Kafka, redis_kind: str, folder: Path) -> Iterator[Spine]:
    """All roles in one process (`edgeway up`) with a Redis of their own."""
    servers = serve_redis(redis_kind, folder)
    spine = Spine(kafka, folder, write_rules(folder), next(servers))
    try:
        spine.apply()
        spine.start("up", "--partitions", str(PARTITIONS)).wait_ready()
        for topic in (NO_TOPIC, NO_REPLY_TOPIC):
            asyncio.run(delete_topic(spine.kafka, topic))
        yield spine
        spine.stop()
    finally:
        for role in spine.roles:
            role.kill()
        next(servers, None)


def serve_pieces(cluster: Kafka, folder: Path) -> Iterator[Spine]:
    """Each role a process, on three brokers, without Redis. `roles` is router, aggregator, two workers."""
    spine = Spine(cluster, folder, write_rules(folder))
    try:
        spine.apply(replication=3)
        spine.start("router")
        spine.start("aggregator")
        for side in ("local", "cloud"):
            spine.start("worker", "--side", side)
        for role in spine.roles:
            role.wait_ready()
        yield spine
        spine.stop()
    finally:
        for role in spine.roles:
            role.kill()


KINDS = [pytest.param("embedded"), pytest.param("container", marks=pytest.mark.containers)]
