from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from typing import TypedDict

import msgspec
import pytest

import edgeway
from edgeway import client
from edgeway.client.errors import FAILURES
from schemas.errors import ERROR_CODES
from schemas.messages import Claim, Failure, Result


def test_public_names_exist_once() -> None:
    for module in (edgeway, client):
        assert len(module.__all__) == len(set(module.__all__))
        assert all(hasattr(module, name) for name in module.__all__)
        assert set(module.__all__) <= set(dir(module))
    assert set(edgeway.__all__) <= set(client.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Clint'"):
        edgeway.Clint  # noqa: B018


def test_the_package_stays_light() -> None:
    """Every command imports it; a client over HTTP needs no Kafka client."""
    code = (
        "import sys, edgeway\n"
        "heavy = ('msgspec', 'asyncio', 'httpx', 'rich', 'aiokafka', 'faust', 'onnxruntime', 'starlette')\n"
        "print([name for name in heavy if name in sys.modules])\n"
        "edgeway.SyncHttpClient('http://host:1')\n"
        "print([name for name in heavy[4:] if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n[]\n"


def test_both_faces_are_alike() -> None:
    for name in ("route", "submit", "result", "stream", "map", "cancel", "open", "close"):
        assert callable(getattr(client.Client, name))
        assert callable(getattr(client.SyncClient, name))


@pytest.mark.parametrize("code", ERROR_CODES)
def test_every_error_code_has_an_exception(code: str) -> None:
    result = Result(id="a", status="error", error=Failure(code=code, message="why"))  # type: ignore[arg-type]
    with pytest.raises(client.AnswerError, match=rf"request a: why \({code}\)") as caught:
        client.raise_for_error(result)
    assert type(caught.value) is FAILURES[code]  # type: ignore[index]
    assert caught.value.code == code


class Intent(msgspec.Struct):
    intent: str
    score: float = 0.0


@dataclass
class AsDataclass:
    intent: str


class AsTypedDict(TypedDict):
    intent: str


def test_outputs_as_types() -> None:
    result = Result(id="a", status="partial", output={"intent": "card", "more": 1})
    assert client.output_as(result, Intent) == Intent("card")
    assert client.output_as(result, AsDataclass) == AsDataclass("card")
    assert client.output_as(result, AsTypedDict)["intent"] == "card"
    assert client.output_as(Result(id="a", status="ok", output=[1]), list[int]) == [1]
    with pytest.raises(TypeError, match=r"request a is no Intent: .*\$.intent"):
        client.output_as(Result(id="a", status="ok", output={"intent": 5}), Intent)
    large = Result(id="b", status="ok", claim=Claim(dataref="file:///tmp/o/x", sha256="0" * 64, size=9))
    with pytest.raises(TypeError, match="request b is too large for a record"):
        client.output_as(large, Intent)
    assert client.raise_for_error(result) is result
