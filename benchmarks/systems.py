"""The two things compared: Edgeway's roles, and the floor's loops on records of the same sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from benchmarks import floor
from benchmarks.load import Load, Sent
from benchmarks.processes import ROOT, Failed, Role
from benchmarks.shapes import Template, Templates
from schemas import codec, topics
from schemas.messages import Result

RULES = ROOT / "examples" / "demo" / "rules.json"
CAPABILITY = "local/vision/image_class"
WORK = topics.capability_topic("local", "vision/image_class")
ROLES = ("aggregator", "worker", "router")


@dataclass(slots=True)
class System:
    """Topics, and the command line of each role."""

    name: str
    requests: str
    results: str
    commands: dict[str, list[str]]

    def roles(self, folder: Path, profiles: Path | None = None) -> list[Role]:
        """Its processes, not started. With `profiles` cProfile writes a file of each role there."""
        made = []
        for role, command in self.commands.items():
            wrapped = (
                []
                if profiles is None
                else ["-m", "cProfile", "-o", str(profiles / f"{self.name}-{role}.prof")]
            )
            made.append(Role(f"{self.name}-{role}", [*wrapped, *command], folder))
        return made

    def check(self, result: Any) -> None:
        """Raises Failed where an answer of Edgeway is not `ok`."""
        if self.name != "edgeway":
            return
        answer = codec.decode(result.value, Result)
        if answer.status != "ok":
            raise Failed(f"request {answer.id} was answered with {answer.status}: {answer.error}")


def edgeway(kafka: str) -> System:
    """Router, worker and aggregator as a user starts them."""
    common = ["--kafka", kafka, "--rules", str(RULES)]
    commands = {role: ["-m", "edgeway", role, *common] for role in ROLES}
    commands["worker"] += ["--capabilities", CAPABILITY]
    return System("edgeway", topics.REQUESTS, topics.RESULTS, commands)


def bare(kafka: str, templates: Path) -> System:
    """The floor."""
    commands = {
        role: ["-m", "benchmarks.floor", role, "--kafka", kafka, "--templates", str(templates)]
        for role in ROLES
    }
    return System("floor", floor.REQUESTS, floor.RESULTS, commands)


async def templates(load: Load, sent: Sequence[Sent]) -> bytes:
    """The records that Edgeway wrote for the last of `sent`, as the floor's templates.

    Raises:
        Failed: one of them is not in the log.
    """
    request = sent[-1]
    nothing = dict.fromkeys
    joins = await load.read(topics.JOINS, nothing(load.places(topics.JOINS), 0))
    work = await load.read(WORK, nothing(load.places(WORK), 0))
    results = await load.read(topics.RESULTS, nothing(load.places(topics.RESULTS), 0))
    mine = [record for record in joins if record.key == request.key]
    plans = [record for record in mine if _type(record) == b"edgeway.plan"]
    partials = [record for record in mine if _type(record) == b"edgeway.partial"]
    subtasks = [record for record in work if record.key == request.key + floor.STEP]
    answers = [record for record in results if record.key == request.key]
    found = [plans, subtasks, partials, answers]
    if not all(found):
        raise Failed(f"the log has {[len(each) for each in found]} plans, subtasks, partials and results")
    plan, subtask, partial, result = (Template(each[0].value, list(each[0].headers)) for each in found)
    image = _image(request.value)
    made = Templates(
        plan=plan,
        subtask=subtask,
        partial=partial,
        result=result,
        request_pixels=request.value.index(image),
        subtask_pixels=subtask.value.index(image),
    )
    return msgspec.msgpack.encode(made)


def _type(record: Any) -> bytes | None:
    return dict(record.headers).get("ce_type")


def _image(value: bytes) -> bytes:
    return bytes(codec.decode_request(value).inputs["pixels"])
