"""Inputs that name what is to be fetched."""

from __future__ import annotations

import time

import pytest

from edgeway.gateway.problems import FieldRefused
from edgeway.gateway.urls import check_urls
from tests.helpers.gateway import RULES, gateway
from workers.library.fetch import Allowed

ALLOWED = Allowed(RULES["hosts"])


@pytest.mark.parametrize(
    "url",
    [
        "https://images.example.com/a.jpg?x=1",
        "http://IMAGES.example.com./a",
        "https://a.b.cdn.example.com/",
        "http://127.0.0.1:8099/cat.jpg",
        "data:image/png;base64,iVBOR",
    ],
)
def test_what_a_worker_would_fetch(url: str) -> None:
    check_urls({"image_url": url, "text": "..."}, ALLOWED)
    check_urls({"image_url": [url, url]}, ALLOWED)


@pytest.mark.parametrize(
    "url",
    [
        "...",
        "",
        "images.example.com/a.jpg",
        "//images.example.com/a.jpg",
        "ftp://images.example.com/a",
        "file:///etc/passwd",
        "https://evil.example.com/",
        "https://images.example.com:444/",
        "https://images.example.com@evil.example.com/",
        "https://user:pw@images.example.com/",
        "https://cdn.example.com/",
        "http://127.0.0.1/",
        "http://127.0.0.1:8098/",
        "http://169.254.169.254/latest/meta-data",
        "http://[::1]/",
        "http://localhost/",
        "https://images.example.com:99999/",
        "http://exa mple.com/",
        "data:image/png;base64",
        "https://images.example.com/" + "a" * 9000,
        1,
        None,
        {"a": 1},
        ["https://images.example.com/", "..."],
    ],
)
def test_what_none_would(url: object) -> None:
    with pytest.raises(FieldRefused) as refused:
        check_urls({"image_url": url}, ALLOWED)
    assert refused.value.field == "image_url"
    assert refused.value.status == 400
    assert "passwd" not in str(refused.value)


@pytest.mark.parametrize("each", ["https://images.example.com/", f"https://images.example.com/{'é' * 8000}"])
def test_so_many_that_reading_them_would_keep_others_waiting(each: str) -> None:
    many = [each] * (2**20 // len(each))
    began = time.process_time()
    for inputs in ({"image_url": many}, {f"{n}_url": each for n in range(len(many))}):
        with pytest.raises(FieldRefused, match="at most 256 URLs"):
            check_urls(inputs, ALLOWED)
    assert time.process_time() - began < 1.0
    check_urls({"image_url": ["data:,x"] * 10_000 + [each] * 8}, ALLOWED)


def test_a_private_address_counts_where_it_is_listed_itself() -> None:
    check_urls({"a_url": "http://10.0.0.7/"}, Allowed(["10.0.0.7"]))
    with pytest.raises(FieldRefused):
        check_urls({"a_url": "http://localhost/"}, Allowed(["localhost"]))


async def test_the_originals_second_curl_with_its_dots() -> None:
    body = b'{"task": "image_captioning", "image_url": "..."}'
    async with gateway() as served:
        answer = await served.client.post("/route", content=body)
        assert (answer.status_code, answer.json()["field"]) == (400, "image_url")
        assert answer.json()["detail"].startswith("image_url: it is no URL")
        assert served.exchange.sent == []
        inside = b'{"task": "image_captioning", "inputs": {"image_url": "http://evil.example.com/"}}'
        assert (await served.client.post("/route", content=inside)).json()["field"] == "image_url"
