"""`local/image/preprocess` on real images, from bytes and from a real server."""

from __future__ import annotations

import base64
import io
import json
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from PIL import Image

from schemas.rules import parse_rules
from tests.helpers.endpoint import Endpoint, Reply, endpoint
from workers.backends import Answer, Row, RulesFollower
from workers.library.fetch import Allowed, Fetcher, is_public
from workers.library.image import ImageBackend, Wanted

RED, BLUE = (255, 0, 0), (0, 0, 255)


def picture(kind: str = "PNG", size: tuple[int, int] = (4, 2), mode: str = "RGB", **saved: Any) -> bytes:
    """Left half red, right half blue."""
    image = Image.new("RGB", size, RED)
    image.paste(BLUE, (size[0] // 2, 0, size[0], size[1]))
    out = io.BytesIO()
    image.convert(mode).save(out, kind, **saved)
    return out.getvalue()


def asked(inputs: dict[str, Any], backend: ImageBackend | None = None, **params: Any) -> Answer:
    (answer,) = (backend or ImageBackend()).infer([Row(inputs, params)])
    return answer


def tensor(inputs: dict[str, Any], **params: Any) -> Any:
    answer = asked(inputs, **params)
    assert answer.error is None, answer.error
    return np.frombuffer(answer.output["pixels"], "<f4").reshape(answer.output["shape"])


def message(answer: Answer, code: str = "bad_input") -> str:
    assert answer.error is not None
    assert answer.error.code == code, answer.error
    assert "secret" not in answer.error.message
    return answer.error.message


PNG = picture()


@pytest.mark.parametrize(
    "given",
    [
        PNG,
        base64.b64encode(PNG).decode(),
        base64.encodebytes(PNG).decode(),
        "data:image/png;base64," + base64.b64encode(PNG).decode(),
        picture("WEBP", lossless=True),
        picture("BMP"),
        picture("GIF"),
    ],
)
def test_every_way_to_give_one(given: Any) -> None:
    values = tensor({"image": given})
    assert values.shape == (2, 4, 3)
    assert values[0, 0].tolist() == [1.0, 0.0, 0.0]
    assert values[1, 3].tolist() == [0.0, 0.0, 1.0]


def test_shapes_layouts_and_numbers() -> None:
    assert tensor({"image": PNG}, width=28, height=28).shape == (28, 28, 3)
    assert tensor({"image": PNG}, width=28).shape == (14, 28, 3)
    assert tensor({"image": PNG}, layout="chw").shape == (3, 2, 4)
    gray = tensor({"image": PNG}, mode="gray")
    assert gray.shape == (2, 4, 1)
    assert gray[0, 0, 0] == pytest.approx(76 / 255)
    assert tensor({"image": PNG}, invert=True)[0, 0].tolist() == [0.0, 1.0, 1.0]
    scaled = tensor({"image": PNG}, mean=[0.5, 0.0, 0.5], std=0.5)
    assert scaled[0, 0].tolist() == [1.0, 0.0, -1.0]
    boxed = tensor({"image": PNG}, width=4, height=4, fit="contain")
    assert boxed[0].sum() == 0.0
    assert boxed[1, 0].tolist() == [1.0, 0.0, 0.0]
    assert tensor({"image": PNG}, width=2, height=2, fit="cover")[0, 0].tolist() == [1.0, 0.0, 0.0]


def test_a_smaller_image_instead_of_a_tensor() -> None:
    answer = asked({"image": PNG}, width=2, height=1, format="png")
    assert (answer.output["width"], answer.output["height"]) == (2, 1)
    again = Image.open(io.BytesIO(answer.output["image"]))
    assert (again.format, again.size, again.mode) == ("PNG", (2, 1), "RGB")


def test_a_form_of_its_own_heeds_no_params() -> None:
    backend = ImageBackend("image/small", Wanted(width=2, height=1, mode="gray"))
    assert backend.card.capability == "image/small"
    assert asked({"image": PNG}, backend, width=4, mode="rgb").output["shape"] == [1, 2, 1]


def test_it_stands_upright() -> None:
    turned = Image.Exif()
    turned[0x0112] = 6
    values = tensor({"image": picture("JPEG", (32, 16), quality=95, exif=turned)})
    assert values.shape == (32, 16, 3)
    assert values[2, 8].argmax() == 0
    assert values[29, 8].argmax() == 2


def test_what_is_transparent_is_white_and_16_bits_are_scaled() -> None:
    out = io.BytesIO()
    Image.new("RGBA", (2, 2), (0, 0, 0, 0)).save(out, "PNG")
    assert tensor({"image": out.getvalue()}).min() == 1.0
    out = io.BytesIO()
    Image.fromarray(np.full((2, 2), 32768, np.uint16)).save(out, "PNG")
    assert tensor({"image": out.getvalue()}, mode="gray").max() == pytest.approx(0.5, abs=0.01)


def bomb(width: int, height: int) -> bytes:
    """A PNG that says it is large, in few bytes."""

    def chunk(name: bytes, body: bytes) -> bytes:
        crc = zlib.crc32(name + body).to_bytes(4, "big")
        return len(body).to_bytes(4, "big") + name + body + crc

    header = width.to_bytes(4, "big") + height.to_bytes(4, "big") + b"\x08\x00\x00\x00\x00"
    data = zlib.compress(b"\x00" * 100_000)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("inputs", "params", "says"),
    [
        ({}, {}, "one of them"),
        ({"image": PNG, "image_url": "https://secret/"}, {}, "one of them"),
        ({"image": 7}, {}, "neither bytes nor text"),
        ({"image": "secret%"}, {}, "no base64"),
        ({"image": "data:image/png,secret"}, {}, "without base64"),
        ({"image": b"secret"}, {}, "none of PNG"),
        ({"image": PNG[:-30]}, {}, "damaged"),
        ({"image": picture("TIFF")}, {}, "none of PNG"),
        ({"image": bomb(30_000, 30_000)}, {}, "pixels"),
        ({"image": bomb(6000, 6000)}, {}, "pixels"),
        ({"image": picture(size=(1000, 1000))}, {}, "give a width and height"),
        ({"image": picture(size=(4, 4000))}, {"width": 4000}, "pixels"),
        ({"image": PNG}, {"width": 0}, "params.width"),
        ({"image": PNG}, {"fit": "secret"}, "params.fit"),
        ({"image": PNG}, {"std": 0}, "params.std"),
        ({"image": PNG}, {"std": float("nan")}, "params.std"),
        ({"image": PNG}, {"std": [1.0, 1.0, 1e-45]}, "params.std"),
        ({"image": PNG}, {"mean": float("nan")}, "params.mean"),
        ({"image": PNG}, {"mean": 1e300}, "params.mean"),
        ({"image": PNG}, {"mean": [1.0, 2.0]}, "params.mean"),
    ],
)
def test_bad_input_is_named_and_never_quoted(inputs: Any, params: dict[str, Any], says: str) -> None:
    assert says in message(asked(inputs, **params))


@pytest.fixture
def server() -> Iterator[Endpoint]:
    for one in endpoint():
        one.reply = lambda _: Reply(body=PNG)
        yield one


def fetching(*hosts: str, **limits: Any) -> ImageBackend:
    backend = ImageBackend(fetcher=Fetcher(**limits))
    assert isinstance(backend, RulesFollower)
    backend.prepare(parse_rules(json.dumps({"tasks": {}, "hosts": list(hosts)}).encode()))()
    return backend


def test_an_allowed_host(server: Endpoint) -> None:
    address = server.url.removeprefix("http://")
    answer = asked({"image_url": server.url + "/a.png?x=1"}, fetching(address))
    assert answer.error is None, answer.error
    assert answer.output["shape"] == [2, 4, 3]
    (call,) = server.calls
    assert (call.path, call.headers["host"]) == ("/a.png?x=1", address)


def test_hosts_that_are_not_allowed(server: Endpoint) -> None:
    port = server.url.rpartition(":")[2]
    for hosts in ((), ("example.com",), ("127.0.0.1",), ("127.0.0.1:1",)):
        assert "not listed" in message(asked({"image_url": server.url + "/secret"}, fetching(*hosts)))
    private = asked({"image_url": f"http://localhost:{port}/secret"}, fetching(f"localhost:{port}"))
    assert "private address" in message(private)
    for url in ("file:///etc/secret", "ftp://example.com/secret", "secret", "http://", 7):
        message(asked({"image_url": url}, fetching("example.com")))
    assert server.calls == []


def test_redirects_are_checked_as_the_first_url_was(server: Endpoint) -> None:
    address = server.url.removeprefix("http://")
    port = address.rpartition(":")[2]
    places = {"/near": "/there", "/far": f"http://localhost:{port}/secret", "/round": "/round"}

    def reply(call: Any) -> Reply:
        place = places.get(call.path)
        return Reply(302, headers={"location": place}) if place else Reply(body=PNG)

    server.reply = reply
    backend = fetching(address)
    assert asked({"image_url": server.url + "/near"}, backend).error is None
    assert "not listed" in message(asked({"image_url": server.url + "/far"}, backend))
    assert "redirected more" in message(asked({"image_url": server.url + "/round"}, backend))


@pytest.mark.parametrize(
    ("reply", "code", "says"),
    [
        (Reply(404), "bad_input", "404"),
        (Reply(503), "backend_error", "503"),
        (Reply(body=b"x" * 5000), "bad_input", "larger"),
        (Reply(body=b"x" * 50, trickle_s=0.1), "backend_error", "longer than"),
        (Reply(after_s=3.0), "backend_error", "longer than"),
        (Reply(cut=True), "backend_error", "cannot be asked"),
    ],
)
def test_hosts_that_do_not_give_it(server: Endpoint, reply: Reply, code: str, says: str) -> None:
    server.reply = lambda _: reply
    backend = fetching(server.url.removeprefix("http://"), max_bytes=1000, total_s=0.8)
    assert says in message(asked({"image_url": server.url + "/secret"}, backend), code)


@pytest.mark.parametrize(
    ("host", "port", "scheme", "covered"),
    [
        ("images.example.com", 443, "https", True),
        ("images.example.com", 8443, "https", False),
        ("example.com", 443, "https", False),
        ("badimages.example.com", 443, "https", True),
        ("images.example.com.evil.net", 443, "https", False),
        ("ported.net", 8443, "https", True),
        ("ported.net", 443, "https", False),
        ("fd00::1", 80, "http", True),
        ("10.0.0.7", 80, "http", False),
    ],
)
def test_the_hosts_of_the_rules(host: str, port: int, scheme: str, covered: bool) -> None:
    allowed = Allowed(("*.Example.com", "ported.net:8443", "[fd00::1]"))
    assert allowed.lists(host, port, scheme) is covered


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.216.34", True),
        ("127.0.0.1", False),
        ("10.1.2.3", False),
        ("169.254.169.254", False),
        ("100.64.0.1", False),
        ("0.0.0.0", False),
        ("224.0.0.1", False),
        ("::1", False),
        ("fe80::1%eth0", False),
        ("::ffff:10.0.0.1", False),
        ("2002:0a00:0001::1", False),
        ("2606:2800:220:1::1", True),
        ("64:ff9b::a01:203", False),
        ("64:ff9b::5db8:d822", True),
        ("::127.0.0.1", False),
    ],
)
def test_private_addresses(address: str, public: bool) -> None:
    assert is_public(address) is public
