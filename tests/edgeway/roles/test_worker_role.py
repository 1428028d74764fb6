"""What a worker serves: what its apps offer and the rules use, and what the rules put behind a URL."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from edgeway.errors import UsageError
from edgeway.roles.process import Process
from edgeway.roles.worker import backends_of, follow_rules
from schemas.rules import Rules, parse_rules
from streams.settings import Settings
from workers.backends import Backend, Row
from workers.backends.fallback import FallbackBackend

APP = """
from workers.backends.function import capability

@capability("local/caption")
@capability("local/spare")
@capability("cloud/offered")
def answer(inputs, params):
    return inputs
"""
URL = "https://cloud-api.example.com/vision/caption"
TASKS = {
    "caption": {"fallback_url": URL},
    "offered": {"fallback_url": URL + "/2", "side": "cloud"},
}


@pytest.fixture
def app(tmp_path: Path) -> str:
    path = tmp_path / "role_app.py"
    path.write_text(APP, encoding="utf-8")
    return str(path)


def rules(*apps: str, **tasks: Any) -> Rules:
    said = {"apps": list(apps), "builtin": False, "tasks": tasks or TASKS}
    return parse_rules(json.dumps(said).encode())


def names(backends: list[Backend]) -> list[str]:
    return sorted(f"{backend.card.side}/{backend.card.capability}" for backend in backends)


def served(rules: Rules, **settings: Any) -> list[str]:
    return names(backends_of(Settings(rules=Path("rules.json"), **settings), rules))


def test_an_app_goes_before_a_url_and_what_no_task_uses_is_left_out(app: str) -> None:
    assert served(rules(app)) == ["cloud/caption", "cloud/offered", "local/caption"]
    assert served(rules(app), side="cloud") == ["cloud/caption", "cloud/offered"]
    assert served(rules(app), side="local") == ["local/caption"]
    (stands_in,) = (
        backend
        for backend in backends_of(Settings(side="cloud"), rules(app))
        if isinstance(backend, FallbackBackend)
    )
    assert stands_in.card.capability == "caption"


def test_what_is_named_is_served_whether_a_task_uses_it_or_not(app: str) -> None:
    assert served(rules(app), capabilities=("local/spare",)) == ["local/spare"]
    assert names(backends_of(Settings(), rules(app))).count("local/spare") == 1


def test_urls_need_no_app() -> None:
    assert served(rules()) == ["cloud/caption", "cloud/offered"]
    assert served(rules(), capabilities=("cloud/caption",)) == ["cloud/caption"]
    with pytest.raises(UsageError, match="nothing to serve on side local"):
        served(rules(), side="local")


def test_an_app_that_no_task_uses_is_an_error(app: str) -> None:
    with pytest.raises(UsageError, match="the rules use none of cloud/offered, local/caption, local/spare"):
        served(rules(app, other={"side": "local"}))


async def test_new_rules_are_followed_once_everybody_agrees() -> None:
    process = Process.create("test", Settings(kafka="127.0.0.1:1"), rules())
    backends = backends_of(Settings(), rules())
    follow_rules(process, backends)
    (prepare,) = process.on_rules
    adopt = prepare(rules(caption={"fallback_url": URL, "cloud_batch_size": 3}))
    sizes = {backend.card.capability: backend.card.max_batch for backend in backends}
    assert 3 not in sizes.values()
    adopt()
    kept = {backend.card.capability: backend for backend in backends}
    assert kept["caption"].card.max_batch == 3
    await kept["offered"].load()
    (answer,) = kept["offered"].infer([Row({}, {})])
    assert answer.error is not None
    assert "no fallback_url" in answer.error.message
    for backend in backends:
        backend.close()
    await process.outlet.stop(1.0)
