"""Apps: what a worker can be told to serve."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from workers.catalogue import backends_for, load_app
from workers.errors import AppError, UnknownCapability

APP = """
from schemas.cards import Card
from workers.backends.function import FunctionBackend, capability

@capability("local/text/tokenize")
def tokenize(inputs, params):
    return inputs["text"].split()

also_tokenize = tokenize

@capability("cloud/text/tokenize", cost=0.1)
@capability("local/text/count")
def count(inputs, params):
    return len(inputs["text"])

def helper(inputs, params):
    return None

MODELS = [FunctionBackend(Card(capability="text/helper", side="cloud", version="2", model="helper"), helper)]
"""


@pytest.fixture
def app(tmp_path: Path) -> str:
    path = tmp_path / "some_app.py"
    path.write_text(APP)
    return str(path)


def names(backends: list) -> list[str]:  # type: ignore[type-arg]
    return sorted(f"{backend.card.side}/{backend.card.capability}" for backend in backends)


def test_functions_and_backends_of_a_file_are_found_once(app: str) -> None:
    every = ["cloud/text/helper", "cloud/text/tokenize", "local/text/count", "local/text/tokenize"]
    assert names(load_app(app)) == every


def test_a_module_by_name_is_found_in_the_working_directory(
    app: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(app).parent)
    monkeypatch.setattr("sys.path", [entry for entry in __import__("sys").path if entry])
    assert len(load_app("some_app")) == 4


def test_a_side_and_names_choose(app: str) -> None:
    assert names(backends_for("local", [app])) == ["local/text/count", "local/text/tokenize"]
    assert names(backends_for("cloud", [app], ["text/tokenize"])) == ["cloud/text/tokenize"]
    assert names(backends_for("local", [app], ["local/text/count"])) == ["local/text/count"]
    assert len(backends_for(None, [app])) == 4


def test_an_unknown_name_lists_the_known(app: str) -> None:
    with pytest.raises(
        UnknownCapability, match=r"unknown capability nlp/x, text/helper on side local.*local/text/count"
    ):
        backends_for("local", [app], ["nlp/x", "text/helper", "text/count"])
    with pytest.raises(UnknownCapability, match="none"):
        backends_for("local", [])


def test_apps_that_cannot_be_served_say_why(
    tmp_path: Path, app: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(name: str, text: str) -> str:
        (tmp_path / name).write_text(text)
        return str(tmp_path / name)

    cases = {
        write("empty.py", "x = 1"): "offers nothing",
        write("broken.py", "1 / 0"): "ZeroDivisionError",
        write("leaving.py", "import sys; sys.exit(3)"): "fails to load: SystemExit: 3",
        write("panic.py", "class Panic(BaseException): ...\nraise Panic(7)"): "fails to load: Panic: 7",
        write(
            "bare.py",
            "from workers.backends.function import capability\n@capability\ndef shout(text: str): ...\n",
        ): r'above shout has no name; write @capability\("local/NAME"\)',
        write("needy.py", "import no_such_module_x"): "no_such_module_x",
        write(
            "twice.py", APP + "\n@capability('local/text/count')\ndef again(inputs, params): ...\n"
        ): "twice",
        str(tmp_path / "absent.py"): "is not found",
        "no_such_app_x": "is not found",
        "workers.no_such_app_x": "is not found",
    }
    monkeypatch.chdir(tmp_path)
    cases["leaving"] = "fails to load: SystemExit: 3"
    for path, told in cases.items():
        with pytest.raises(AppError, match=told):
            load_app(path)
    with pytest.raises(AppError, match="twice"):
        backends_for("local", [app, app])


def test_one_name_of_an_app_can_be_served_alone(app: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert names(load_app(f"{app}:tokenize")) == ["local/text/tokenize"]
    assert names(load_app(f"{app}:count")) == ["cloud/text/tokenize", "local/text/count"]
    assert names(load_app(f"{app}:MODELS")) == ["cloud/text/helper"]
    monkeypatch.chdir(Path(app).parent)
    assert names(load_app("some_app:count")) == ["cloud/text/tokenize", "local/text/count"]
    with pytest.raises(AppError, match="there is no absent; MODELS, also_tokenize, count, tokenize can be"):
        load_app(f"{app}:absent")
    with pytest.raises(AppError, match="offers nothing"):
        load_app(f"{app}:helper")
    for wrong in (f"{app}:", ":count", "some app:a b"):
        with pytest.raises(AppError, match=r"give MODULE, FILE\.py, MODULE:NAME"):
            load_app(wrong)


def test_an_app_of_your_own_goes_before_the_library(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(
        "from workers.backends.function import capability\n"
        "@capability('local/text/clean', version='mine')\ndef clean(text: str): ...\n",
        encoding="utf-8",
    )
    for apps in (["workers.library", str(path)], [str(path), "workers.library"]):
        cards = {backend.card.capability: backend.card for backend in backends_for("local", apps)}
        assert cards["text/clean"].version == "mine"
        assert "geo/gps_check" in cards


def test_an_app_may_give_its_backends_when_it_is_asked(tmp_path: Path) -> None:
    app = tmp_path / "lazy_app.py"
    app.write_text(
        "from workers.sdk import capability\n"
        "def offers():\n"
        "    from workers.backends.function import backends_of\n"
        "    @capability('local/test/late')\n"
        "    def late(text: str) -> str:\n"
        "        return text\n"
        "    return backends_of(late)\n"
    )
    assert [backend.card.capability for backend in load_app(str(app))] == ["test/late"]


def test_a_module_of_the_library_loads_no_other_group() -> None:
    code = "import sys, workers.library.geo; print([m for m in sys.modules if 'library.v' in m])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"


LIMITS = """
import math
from schemas.cards import Card
from workers.backends.function import FunctionBackend, capability
from workers.backends.openai import OpenAIBackend

def f(inputs, params):
    return 1

"""


@pytest.mark.parametrize(
    "line",
    [
        'made = OpenAIBackend("cloud/nlp/x", url="https://h/v1", model="m", max_batch=0)',
        'made = OpenAIBackend("cloud/nlp/x", url="https://h/v1", model="m", max_qps=-1)',
        'made = OpenAIBackend("cloud/nlp/x", url="https://h/v1", model="m", max_wait_ms=math.nan)',
        'made = FunctionBackend(Card(capability="x", side="local", version="1", model="m", max_batch=0), f)',
        'made = capability("local/x", cost=math.nan)(f)',
        'made = capability("local/x", qps=math.nan, max_batch=1)(f)',
        'made = capability("local/x", max_cost=math.inf)(f)',
        'made = capability("local/x", max_batch=0)(f)',
    ],
)
def test_limits_without_sense_are_refused_whatever_names_them(tmp_path: Path, line: str) -> None:
    path = tmp_path / "limits_app.py"
    path.write_text(LIMITS + line, encoding="utf-8")
    with pytest.raises(AppError, match="max_batch is at least 1; times, costs and qps"):
        load_app(str(path))
