from __future__ import annotations

import ast
import sys
from pathlib import Path

import schemas

PACKAGE = Path(schemas.__file__).parent


def imported(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.add((node.module or "").partition(".")[0])
    return found


def test_public_names_exist_once():
    assert len(schemas.__all__) == len(set(schemas.__all__))
    assert all(hasattr(schemas, name) for name in schemas.__all__)


def test_the_package_needs_msgspec_alone():
    for path in PACKAGE.glob("*.py"):
        assert imported(path) <= {"schemas", "msgspec", *sys.stdlib_module_names}, path.name


def test_the_package_does_no_io():
    forbidden = {"asyncio", "socket", "subprocess", "threading", "os", "time", "random", "logging"}
    for path in PACKAGE.glob("*.py"):
        assert not imported(path) & forbidden, path.name
