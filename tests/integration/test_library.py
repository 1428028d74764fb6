"""The examples of docs/library.md, as they stand there, with the demo's models."""

from __future__ import annotations

import base64
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.helpers.caller import Caller
from tests.helpers.docker import ROOT
from tests.helpers.kafka import Kafka
from tests.helpers.roles import Role, command
from tests.integration.spine.samples import SURE, SURE_INTENT, images

pytestmark = pytest.mark.integration

SHIRT = "Shirt"
"""What the first of the demo's images shows."""
DEMO = ROOT / "examples" / "demo" / "app.py"


@pytest.fixture
def up(own_kafka: Kafka, tmp_path: Path) -> Iterator[Role]:
    page = (ROOT / "docs" / "library.md").read_text(encoding="utf-8")
    (rules,) = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    *_, forms = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (tmp_path / "forms.py").write_text(forms, encoding="utf-8")
    path = tmp_path / "rules.json"
    path.write_text(rules.replace('"app.py"', json.dumps(str(DEMO))), encoding="utf-8")
    about = ("--kafka", own_kafka.bootstrap, "--rules", str(path), "--log-format", "text")
    done = command("topics", "apply", *about[:4], "--partitions", "1", "--fix")
    assert done.returncode == 0, done.stdout + done.stderr
    role = Role(tmp_path, "up", "--partitions", "1", *about).start()
    try:
        yield role.wait_ready()
    finally:
        role.kill()


def png(pixels: list[float]) -> str:
    """The demo's image, four times as large, as a data URL."""
    square = (np.array(pixels).reshape(28, 28).clip(0, 1) * 255).round().astype(np.uint8)
    out = io.BytesIO()
    Image.fromarray(square.repeat(4, 0).repeat(4, 1)).save(out, "PNG")
    return "data:image/png;base64," + base64.b64encode(out.getvalue()).decode()


async def test_the_examples_of_the_page(own_kafka: Kafka, up: Role) -> None:
    async with Caller(own_kafka.bootstrap) as caller:
        dirty = "<p>" + SURE.replace(" ", "\u3000\u200b ") + "</p>"
        answer = await caller.ask({"task": "clean_intent", "text": dirty, "params": {"html": "strip"}})
        assert answer.status == "ok", json.dumps(answer.body, default=str)
        assert answer.body["output"]["intent"] == SURE_INTENT

        pixels: Any = images()[0]
        answer = await caller.ask({"task": "photo_class", "image": png(pixels)})
        assert answer.status == "ok", json.dumps(answer.body, default=str)
        assert answer.body["output"]["label"] == SHIRT

        answer = await caller.ask({"task": "photo_class", "image_url": "http://127.0.0.1/secret.png"})
        assert (answer.status, answer.code) == ("error", "bad_input")
        assert "not listed under `hosts`" in answer.message
        assert "secret" not in json.dumps(answer.body)
