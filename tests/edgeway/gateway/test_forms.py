"""multipart/form-data: texts, files, whole requests; what is small stays, what is large is claimed."""

from __future__ import annotations

import time
from typing import Any

import httpx
import pytest

from schemas.claims import INLINE_BYTES, claim_of
from streams.claims import Objects, open_store
from streams.settings import Settings
from tests.helpers.gateway import gateway


async def test_texts_are_keys_or_inputs_and_files_are_inputs() -> None:
    async with gateway() as served:
        data = {
            "task": "image_captioning",
            "deadline_ms": "5000",
            "max_cost": "0.5",
            "params": '{"n": 1}',
            "lang": "de",
        }
        files = [
            ("image", ("a.png", b"\x89PNG\x00", "image/png")),
            ("notes", ("a.txt", "grün".encode(), "text/plain")),
            ("meta", ("a.json", b'{"a": [1]}', "application/json")),
            ("page", ("1.bin", b"1", None)),
            ("page", ("2.bin", b"2", None)),
        ]
        answer = await served.client.post("/route", data=data, files=files)
        assert answer.status_code == 200, answer.text
        (sent,) = served.exchange.sent
        assert (sent.task, sent.deadline_ms, sent.max_cost, sent.params) == (
            "image_captioning",
            5000,
            0.5,
            {"n": 1},
        )
        assert sent.inputs == {
            "lang": "de",
            "image": b"\x89PNG\x00",
            "notes": "grün",
            "meta": {"a": [1]},
            "page": [b"1", b"2"],
        }
        assert answer.headers["content-type"] == "application/json"


async def test_a_part_may_be_a_whole_request() -> None:
    async with gateway() as served:
        files: list[Any] = [
            ("request", (None, b'{"task": "summarize", "inputs": {"a": 1}, "b": 2}', "application/json")),
            ("c", (None, b"3")),
        ]
        assert (await served.client.post("/route", files=files)).status_code == 200
        assert served.exchange.sent[0].inputs == {"a": 1, "b": 2, "c": "3"}


@pytest.mark.parametrize(
    "files",
    [
        [("request", (None, b"[]"))],
        [("request", (None, b"{}")), ("request", (None, b'{"task": "a"}')), ("task", (None, b"b"))],
        [("request", (None, b'{"task": "a"}')), ("task", (None, b"b"))],
        [("task", (None, b"a")), ("task", (None, b"b"))],
        [("task", (None, b"a")), ("params", (None, b"no"))],
        [("task", (None, b"a")), ("deadline_ms", (None, b"soon"))],
        [("task", (None, b"a")), ("text", (None, b"\xff"))],
        [("task", (None, b"a")), ("task", ("f", b"b"))],
        [("a", (None, b"a")) for _ in range(65)],
    ],
)
async def test_forms_that_say_no_request(files: list[Any]) -> None:
    async with gateway() as served:
        answer = await served.client.post("/route", files=files)
        assert answer.status_code in (400, 413), answer.text
        assert served.exchange.sent == []


async def test_a_large_file_goes_by_claim_to_its_tenants_place(tmp_path: Any) -> None:
    store = open_store(tmp_path.as_uri())
    large, small = b"x" * (INLINE_BYTES + 1), b"y" * INLINE_BYTES
    async with gateway(objects=Objects(local=store)) as served:
        files = [
            ("image", ("a", large, "image/png")),
            ("one", ("b", small)),
            ("two", ("c", small)),
            ("three", ("d", small)),
        ]
        answer = await served.client.post("/route", data={"task": "a", "tenant": "acme"}, files=files)
        assert answer.status_code == 200, answer.text
        inputs = served.exchange.sent[0].inputs
        claim = claim_of(inputs["image"])
        assert claim is not None
        assert (claim.content_type, claim.size) == ("image/png", len(large))
        assert await store.get(claim, tenant="acme") == large
        with pytest.raises(Exception, match="tenant"):
            await store.get(claim, tenant="other")
        assert (inputs["one"], inputs["two"]) == (small, small)
        assert claim_of(inputs["three"]) is not None, "a record holds only so much"
        assert served.gateway.lobby.bytes == 0
    await store.close()


@pytest.mark.parametrize(
    ("data", "name", "code"),
    [
        ({"task": "a", "tenant": "../other"}, "image", "malformed"),
        ({"task": "a", "tenant": ""}, "image", "malformed"),
        ({"task": "a", "deadline_ms": "soon"}, "image", "malformed"),
        ({"task": "a"}, "inputs", "too_large"),
        ({}, "task", "too_large"),
        ({"task": "a"}, "id", "too_large"),
    ],
)
async def test_nothing_is_kept_of_a_request_that_is_none(
    tmp_path: Any, data: dict[str, str], name: str, code: str
) -> None:
    store = open_store(tmp_path.as_uri())
    async with gateway(objects=Objects(local=store)) as served:
        file = ("a", b"x" * (1024 * 1024 + 1), "text/plain")
        answer = await served.client.post("/route", data=data, files={name: file})
        assert answer.status_code in (400, 413), answer.text
        assert answer.json()["code"] == code
        assert served.exchange.sent == []
    assert list(tmp_path.iterdir()) == []
    await store.close()


async def test_keys_of_the_request_may_come_as_files(tmp_path: Any) -> None:
    store = open_store(tmp_path.as_uri())
    async with gateway(objects=Objects(local=store)) as served:
        inputs = b'{"text": "%s"}' % (b"x" * INLINE_BYTES)
        files = {"inputs": ("i.json", inputs), "task": ("t", b"summarize"), "deadline_ms": ("d", b"900")}
        answer = await served.client.post("/route", files=files)
        assert answer.status_code == 200, answer.text
        (sent,) = served.exchange.sent
        assert (sent.task, sent.deadline_ms, len(sent.inputs["text"])) == ("summarize", 900, INLINE_BYTES)
    await store.close()


async def test_without_a_store_what_fits_no_record_is_refused() -> None:
    async with gateway() as served:
        files = [("image", ("a", b"x" * 1_900_000, "image/png"))]
        answer = await served.client.post("/route", data={"task": "a"}, files=files)
        assert (answer.status_code, answer.json()["code"]) == (413, "too_large")


@pytest.mark.parametrize("name", ["params", "request", "x", "inputs", "file"])
async def test_values_are_bounded_before_they_take_memory(name: str) -> None:
    """30 MiB of empty lists would be 800 MB of values, and two seconds in which nobody else is answered."""
    async with gateway() as served:
        dense = b'{"a": [' + b"[]," * 10_000_000 + b"0]}"
        file = (None if name in ("params", "request", "x") else "f.json", dense, "application/json")
        began = time.process_time()
        answer = await served.client.post("/route", data={"task": "a"}, files={name: file})
        assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
        assert time.process_time() - began < 1.0
        held = (file[0], b'{"a": [' + b"[]," * 300_000 + b"0]}", "application/json")
        answer = await served.client.post("/route", data={"task": "a"}, files={name: held})
        assert (answer.status_code, answer.json()["code"]) == (400, "malformed")
        assert "too many values" in answer.text
        assert served.exchange.sent == []


async def test_a_form_has_its_bound_also_where_it_tells_no_length() -> None:
    async with gateway(settings=Settings(upload_bytes=100_000)) as served:
        request = served.client.build_request("POST", "/route", files={"a": ("a", b"x" * 200_000)})
        assert (await served.client.send(request)).status_code == 413
        body = request.read()

        async def pieces() -> Any:
            for at in range(0, len(body), 10_000):
                yield body[at : at + 10_000]

        kind = {"content-type": request.headers["content-type"]}
        streamed = await served.client.post("/route", content=pieces(), headers=kind)
        assert streamed.status_code == 413
        assert served.gateway.lobby.bytes == 0


async def test_a_form_that_is_cut() -> None:
    async with gateway() as served:
        whole = httpx.Request("POST", "http://g/route", files={"a": ("a", b"x" * 1000)})
        body, kind = whole.read(), {"content-type": whole.headers["content-type"]}
        for cut in (0, 10, 100, len(body) // 2, len(body) - 5):
            answer = await served.client.post("/route", content=body[:cut], headers=kind)
            assert (answer.status_code, answer.json()["code"]) == (400, "malformed"), cut
