"""The rules that the rooms of this project keep: who may import whom, and who alone does what."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ORDER = ("schemas", "streams", "workers", "edgeway")
FILES = sorted(path for package in ORDER for path in (ROOT / package).rglob("*.py"))
NAMES = [str(path.relative_to(ROOT)) for path in FILES]

WORKERS_MAY = ("delivery", "stores", "budget", "claims", "settings", "metrics", "tracing")
AIOKAFKA = ("streams/delivery/drivers/", "edgeway/kafka.py", "edgeway/tail.py", "edgeway/topics_admin.py")
# The producer that `edgeway send` is handed, and what it raises.
AIOKAFKA_TYPES = ("edgeway/client_records.py", "edgeway/dead_lettering.py", "edgeway/sending.py")
IO = {"socket", "ssl", "subprocess", "asyncio", "urllib", "http", "threading", "multiprocessing", "tempfile"}
LIBRARIES_OF_SCHEMAS = {"msgspec", "msgpack", "schemas"}
MOST_LINES = 300
MOST_LINES_A_FUNCTION = 60


@cache
def tree(name: str) -> ast.Module:
    return ast.parse((ROOT / name).read_text(encoding="utf-8"), name)


def imports(name: str) -> Iterator[str]:
    """Every module that a file imports, also inside functions; `from a import b` counts as `a` and `a.b`."""
    for node in ast.walk(tree(name)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name}: a relative import"
            assert node.module is not None
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_there_is_something_to_check() -> None:
    assert len(FILES) > 50
    assert {path.relative_to(ROOT).parts[0] for path in FILES} == set(ORDER)


@pytest.mark.parametrize("name", NAMES)
def test_a_package_imports_only_those_before_it(name: str) -> None:
    package = name.split("/")[0]
    later = ORDER[ORDER.index(package) + 1 :]
    later = (*later, "tests") if name.startswith("edgeway/demo/") else (*later, "tests", "examples")
    assert {module for module in imports(name) if module.split(".")[0] in later} == set()


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("workers/")])
def test_workers_know_little_of_streams(name: str) -> None:
    found = {module for module in imports(name) if module.split(".")[0] == "streams" and "." in module}
    assert {module for module in found if module.split(".")[1] not in WORKERS_MAY} == set()


def test_faust_is_known_in_one_file() -> None:
    knowing = {
        name for name in NAMES for module in imports(name) if module.split(".")[0] in ("faust", "mode")
    }
    assert knowing == {"streams/app.py"}


def test_aiokafka_is_known_at_the_rim() -> None:
    knowing = {name for name in NAMES for module in imports(name) if module.split(".")[0] == "aiokafka"}
    assert {name for name in knowing if not name.startswith((*AIOKAFKA, *AIOKAFKA_TYPES))} == set()
    assert "streams/delivery/drivers/aiokafka_source.py" in knowing


def test_the_outlet_alone_writes_for_the_roles() -> None:
    """A write that did not go by `Outlet.post` would not be checked for a clearance."""
    makers = {
        name
        for name in NAMES
        for node in ast.walk(tree(name))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("AIOKafkaProducer", "AiokafkaSink")
    }
    # The commands write requests, and nothing that was not just typed in; see edgeway/sending.py.
    # The exchange writes by an outlet of its own.
    assert makers == {
        "streams/delivery/drivers/aiokafka_sink.py",
        "edgeway/roles/process.py",
        "edgeway/exchange/kafka.py",
        "edgeway/kafka.py",
    }


def test_cloud_topics_have_one_door() -> None:
    doors = {
        (name, node.name)
        for name in NAMES
        for node in ast.walk(tree(name))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and any(isinstance(inner, ast.Attribute) and inner.attr == "covers" for inner in ast.walk(node))
    }
    assert doors == {("streams/delivery/outlet.py", "_post_cloud")}
    writers = {
        name
        for name in NAMES
        for node in ast.walk(tree(name))
        if isinstance(node, ast.Attribute) and node.attr == "write" and "sink" in ast.unparse(node.value)
    }
    assert writers == {"streams/delivery/outlet.py"}


def test_clear_is_the_only_maker_of_clearances() -> None:
    makers = [
        (name, node.lineno)
        for name in NAMES
        for node in ast.walk(tree(name))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name | ast.Attribute)
        and ast.unparse(node.func).split(".")[-1] == "Clearance"
    ]
    assert [name for name, _ in makers] == ["streams/privacy/clearance.py"]
    (clear,) = [
        node
        for node in tree("streams/privacy/clearance.py").body
        if isinstance(node, ast.FunctionDef) and node.name == "clear"
    ]
    assert clear.lineno < makers[0][1] <= (clear.end_lineno or 0)
    seals = {name for name in NAMES if "_SEAL" in (ROOT / name).read_text(encoding="utf-8")}
    assert seals == {"streams/privacy/clearance.py"}


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("schemas/")])
def test_schemas_do_no_io(name: str) -> None:
    roots = {module.split(".")[0] for module in imports(name)}
    assert roots & IO == set()
    outside = {root for root in roots if root not in sys.stdlib_module_names} - LIBRARIES_OF_SCHEMAS
    assert outside == set()


@pytest.mark.parametrize("name", NAMES)
def test_modules_and_functions_fit_the_eye(name: str) -> None:
    assert len((ROOT / name).read_text(encoding="utf-8").splitlines()) <= MOST_LINES
    long = {
        node.name
        for node in ast.walk(tree(name))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno + 1 > MOST_LINES_A_FUNCTION
    }
    assert long == set()
