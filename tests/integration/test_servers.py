"""The real servers start, answer, can be killed, and a start that fails shows the log."""

from __future__ import annotations

import json
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import servers
from tests.helpers.servers import LlamaServer, MLServer, S3Server, need_servers

pytestmark = pytest.mark.integration


def call(url: str, body: Any = None, method: str | None = None) -> bytes:
    data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {
        "content-type": "application/json",
        "authorization": "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request",
    }
    request = urllib.request.Request(url, data, headers, method=method)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return bytes(answer.read())


def chat(server: LlamaServer) -> Any:
    messages = [{"role": "user", "content": "Hello 你好"}]
    body = {"model": "tiny", "messages": messages, "max_tokens": 8, "temperature": 0}
    return json.loads(call(f"{server.url}/chat/completions", body))


def test_llama_says_the_same_again_also_after_a_kill(llama_server: LlamaServer) -> None:
    first = chat(llama_server)
    text = first["choices"][0]["message"]["content"]
    assert len(text) == 8
    assert text.isprintable()
    assert first["usage"]["completion_tokens"] == 8
    llama_server.kill()
    with pytest.raises(OSError, match="refused"):
        chat(llama_server)
    llama_server.start()
    assert chat(llama_server)["choices"][0]["message"]["content"] == text


def test_llama_embeds(llama_embedder: LlamaServer) -> None:
    answer = json.loads(call(f"{llama_embedder.url}/embeddings", {"input": ["hi", "there"]}))
    assert [len(part["embedding"]) for part in answer["data"]] == [64, 64]


def test_mlserver_serves_its_models(mlserver: MLServer) -> None:
    found = json.loads(call(f"{mlserver.rest}/v2/models/dense"))
    assert found["inputs"] == [{"name": "input", "datatype": "FP32", "shape": [-1, 1, 784]}]
    tensor = {"name": "text", "datatype": "BYTES", "shape": [1, 1], "data": ["grün"]}
    answer = json.loads(call(f"{mlserver.rest}/v2/models/upper/infer", {"inputs": [tensor]}))
    assert answer["outputs"][0]["data"] == ["GRÜN"]


def test_s3_keeps_what_is_put(s3_server: S3Server) -> None:
    call(f"{s3_server.url}/bucket", b"", "PUT")
    call(f"{s3_server.url}/bucket/key", b"value", "PUT")
    assert call(f"{s3_server.url}/bucket/key") == b"value"


def test_a_start_that_fails_tells_the_end_of_the_log(tmp_path: Path) -> None:
    need_servers()
    server = LlamaServer(tmp_path, model=tmp_path / "missing.gguf")
    with pytest.raises(AssertionError, match=r"(?s)serve_llama.py ended with .*missing\.gguf"):
        server.start()


def test_a_server_that_never_gets_ready_is_ended(tmp_path: Path) -> None:
    need_servers()
    server = LlamaServer(tmp_path)
    server._ready = (f"{server.url}/nothing",)
    started = time.monotonic()
    with pytest.raises(AssertionError, match="not ready within 1 s"):
        server.start(within_s=1.0)
    assert time.monotonic() - started < 10
    assert server._process is None


def test_without_servers_tests_are_skipped_or_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "HOME", tmp_path)
    monkeypatch.delenv("EDGEWAY_REQUIRE_DOCKER", raising=False)
    with pytest.raises(pytest.skip.Exception, match="make servers"):
        need_servers()
    monkeypatch.setenv("EDGEWAY_REQUIRE_DOCKER", "1")
    with pytest.raises(pytest.fail.Exception, match="make servers"):
        need_servers()
