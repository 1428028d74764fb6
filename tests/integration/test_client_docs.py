"""docs/client.md: its examples run, on everything that `edgeway up` starts, and print what is shown."""

from __future__ import annotations

import contextlib
import io
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from edgeway import client
from edgeway.client.asking import Asked
from edgeway.client.errors import FAILURES
from tests.helpers.roles import Role

pytestmark = pytest.mark.integration
ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "client.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", TEXT, re.DOTALL)


@pytest.fixture(scope="module")
def up(bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    """The demo on a Kafka of this module's own: its address, and the port of its gateway."""
    rules = ROOT / "examples" / "demo" / "rules.json"
    role = Role(tmp_path_factory.mktemp("up"), "up", "--kafka", bootstrap, "--rules", str(rules))
    role.start()
    try:
        role.wait_ready()
        yield bootstrap, role.port
        assert role.terminate() == 0, role.said
    finally:
        role.kill()


def printed(code: str, kafka: str, port: int) -> list[str]:
    """The lines that an example prints."""
    code = code.replace("kafka://localhost:9092", f"kafka://{kafka}")
    code = code.replace("http://localhost:8080", f"http://127.0.0.1:{port}")
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(code, "docs/client.md", "exec"), {"__name__": "__main__"})
    return out.getvalue().splitlines()


def test_every_example_prints_what_is_shown(up: tuple[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("EDGEWAY_")]:
        monkeypatch.delenv(name)
    assert len(EXAMPLES) == 7
    for code, shown in EXAMPLES:
        lines = printed(code, *up)
        assert lines, code
        assert not shown or lines == shown.splitlines(), code
        assert not any(line.startswith("error") for line in lines), code


def test_the_tables_are_whole() -> None:
    for name in client.__all__:
        if name not in ("AnswerError", "Event", "SyncPending"):
            assert f"`{name}" in TEXT or f"{name}(" in TEXT, name
    for code, kind in FAILURES.items():
        assert kind.__name__ == "CapabilityFailed" or f"`{code}`" in TEXT
    for name in Asked.__optional_keys__:
        assert f"`{name}`" in TEXT, name
