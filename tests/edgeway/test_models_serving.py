"""What a worker serves of a repository, beside apps."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgeway.errors import UsageError
from edgeway.models_serving import cache_of, models_of, source_of
from edgeway.roles.worker import backends_of
from schemas.rules import parse_rules
from streams.settings import Settings
from tests.helpers.models import folder_of
from workers.models.adding import add
from workers.models.chosen import Source
from workers.models.pending import Pending

RULES = parse_rules(b'{"tasks": {"scale": {"capability": "test/scale"}}}')
APP = """
from workers.backends.function import capability

@capability("local/test/{name}")
def served(text: str) -> str:
    return text
"""


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> str:
    place = tmp_path_factory.mktemp("models")
    source = Source(str(place / "repo"), place / "cache")
    for name, side in (("scale", "local"), ("bigger", "cloud"), ("twin", "local"), ("idle", "local")):
        about = {"name": name, "side": side, "capability": "test/scale" if name == "twin" else f"test/{name}"}
        add(source.repository, folder_of(place / name, 2.0), about)
    for name in ("scale", "bigger"):
        source.repository.activate(name, "1")
    return source.repository.store.url


def settings(repository: str, tmp_path: Path, **more: object) -> Settings:
    return Settings(models=repository, models_cache=tmp_path, **more)  # type: ignore[arg-type]


def names(found: list[object]) -> list[str]:
    return [f"{each.card.side}/{each.card.capability}" for each in found]  # type: ignore[attr-defined]


def test_the_active_models_of_a_side_are_served(repository: str, tmp_path: Path) -> None:
    every = backends_of(settings(repository, tmp_path), RULES)
    assert sorted(names(list(every))) == ["cloud/test/bigger", "local/test/scale"]
    assert all(isinstance(backend, Pending) for backend in every)
    assert names(list(backends_of(settings(repository, tmp_path, side="local"), RULES))) == [
        "local/test/scale"
    ]
    named = settings(repository, tmp_path, capabilities=("cloud/test/bigger",))
    assert names(list(backends_of(named, RULES))) == ["cloud/test/bigger"]
    with pytest.raises(UsageError, match="unknown capability local/test/idle"):
        backends_of(settings(repository, tmp_path, capabilities=("local/test/idle",)), RULES)


def test_apps_are_served_beside_and_not_twice(repository: str, tmp_path: Path) -> None:
    for name in ("other", "scale"):
        (tmp_path / f"{name}_app.py").write_text(APP.replace("{name}", name))
    beside = settings(repository, tmp_path, app=str(tmp_path / "other_app.py"), side="local")
    assert sorted(names(list(backends_of(beside, RULES)))) == ["local/test/other", "local/test/scale"]
    twice = settings(repository, tmp_path, app=str(tmp_path / "scale_app.py"))
    with pytest.raises(UsageError, match="local/test/scale is offered by an app and by model scale of"):
        backends_of(twice, RULES)


def test_two_models_of_one_capability_are_refused(repository: str, tmp_path: Path) -> None:
    source = Source(repository, tmp_path)
    source.repository.activate("twin", "1")
    try:
        with pytest.raises(UsageError, match="offered by model scale and by model twin"):
            backends_of(settings(repository, tmp_path), RULES)
    finally:
        source.repository.store.remove("twin")


def test_a_repository_that_nothing_reads_is_a_wrong_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert models_of(Settings()) == []
    with pytest.raises(UsageError, match="Protocol not known"):
        models_of(settings("odd://bucket/x", tmp_path))
    with pytest.raises(UsageError, match="name one with --models"):
        source_of(Settings())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_of(Settings()) == tmp_path / "edgeway" / "models"
