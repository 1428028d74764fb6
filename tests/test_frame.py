"""The frame of the project: what is declared is pinned, and no file names a machine of ours."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PIN = re.compile(
    r"^(?P<name>[a-z0-9.-]+)==(?P<version>\S+)((?: \\\n    --hash=sha256:[0-9a-f]{64})+)$", re.MULTILINE
)
ALL = ROOT / "constraints.txt"
IMAGE = ROOT / "deploy" / "docker" / "constraints.txt"


def pins(path: Path) -> dict[str, str]:
    return {found["name"]: found["version"] for found in PIN.finditer(path.read_text())}


def declared(*groups: str) -> list[Requirement]:
    """The project's own dependencies and those of the named extras and groups."""
    extras, dev = PROJECT["project"]["optional-dependencies"], PROJECT["dependency-groups"]
    lines = [*PROJECT["project"]["dependencies"]]
    lines += [line for group in groups for line in {**extras, **dev}[group] if isinstance(line, str)]
    return [found for found in map(Requirement, lines) if found.name != "edgeway"]


@pytest.mark.parametrize(
    ("path", "groups"),
    [(ALL, ("embedded", "demo", "dev", "build")), (IMAGE, ("build",))],
    ids=["all", "image"],
)
def test_every_dependency_is_pinned_to_a_version_it_allows(path: Path, groups: tuple[str, ...]) -> None:
    found = pins(path)
    wrong = [
        str(one) for one in declared(*groups) if not one.specifier.contains(found.get(one.name, "0"), True)
    ]
    assert not wrong, f"run `make constraints`: {wrong}"


@pytest.mark.parametrize("path", [ALL, IMAGE], ids=["all", "image"])
def test_every_pin_has_hashes_and_no_list_names_a_host(path: Path) -> None:
    rest = PIN.sub("", path.read_text())
    assert rest.strip() == "", "only pins with their hashes may stand here"


def test_the_image_runs_the_versions_that_were_tested() -> None:
    tested = pins(ALL)
    assert {name: tested.get(name) for name in pins(IMAGE)} == pins(IMAGE)


def test_every_command_promised_is_a_target() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert targets >= {"setup", "lint", "test", "demo", "bench", "faults", "clean"}
