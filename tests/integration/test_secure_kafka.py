"""Clients and roles on a Kafka that asks for TLS, and for a password or a certificate."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock
from urllib.parse import quote

import pytest

import edgeway
from edgeway.cli import main
from edgeway.errors import KafkaUnreachable, UsageError
from streams.settings import flag_of
from tests.helpers.roles import Role
from tests.helpers.secure_kafka import PASSWORD, SecureKafka, secure_kafka

pytestmark = pytest.mark.integration
APP = """
from workers.sdk import capability

@capability("local/test/echo")
def echo(text: str) -> str:
    return text
"""
RULES = '{"apps": ["app.py"], "tasks": {"echo": {"capability": "test/echo", "side": "local"}}}'
WITHIN_S = 10.0


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureKafka]:
    with secure_kafka(tmp_path_factory.mktemp("secure")) as found:
        yield found


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    (tmp_path / "app.py").write_text(APP)
    (tmp_path / "rules.json").write_text(RULES)
    return tmp_path / "rules.json"


def flags(bootstrap: str, settings: dict[str, Any]) -> list[str]:
    """The settings as flags, but the password, which comes as a variable."""
    words = ["--kafka", bootstrap]
    for name, value in settings.items():
        words += [] if name == "sasl_password" else [flag_of(name), str(value)]
    return words


def role_on(bootstrap: str, settings: dict[str, Any], rules: Path) -> Role:
    role = Role(rules.parent, "up", *flags(bootstrap, settings), "--rules", str(rules), "--partitions", "2")
    real = os.environ.copy()
    secret = {"EDGEWAY_SASL_PASSWORD": PASSWORD} if "sasl_password" in settings else {}
    with mock.patch("tests.helpers.roles._environment", return_value=real | secret):
        return role.start()


async def test_topics_roles_and_clients_over_tls_with_a_password(
    kafka: SecureKafka, rules: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDGEWAY_SASL_PASSWORD", PASSWORD)
    words = flags(kafka.login, kafka.settings())
    for verb in ("apply", "check"):
        command = ["topics", verb, *words, "--rules", str(rules), "--partitions", "2"]
        assert await asyncio.to_thread(main, command) == 0
    monkeypatch.delenv("EDGEWAY_SASL_PASSWORD")
    role = role_on(kafka.login, kafka.settings(), rules)
    ways = [(kafka.login, kafka.settings()), (kafka.login, kafka.settings("PLAIN"))]
    ways.append((kafka.mutual, kafka.mutual_settings()))
    try:
        role.wait_ready()
        for number, (bootstrap, settings) in enumerate(ways):
            async with edgeway.Client(f"kafka://{bootstrap}", **settings) as client:
                result = await client.route("echo", inputs={"text": f"hello {number}"})
                assert (result.status, result.output) == ("ok", f"hello {number}")
                kinds = [event.kind async for event in client.stream("echo", inputs={"text": "x"})]
                assert (kinds[0], kinds[-1]) == ("accepted", "result")
        assert role.terminate() == 0
    finally:
        role.kill()
    assert PASSWORD not in role.said
    assert PASSWORD not in capsys.readouterr().err


Wrong = Callable[[SecureKafka], tuple[str, dict[str, Any]]]
WRONG: dict[str, tuple[Wrong, str]] = {
    "password": (
        lambda k: (k.login, {**k.settings(), "sasl_password": "no-such"}),
        "SaslAuthenticationFailed",
    ),
    "plain password": (
        lambda k: (k.login, {**k.settings("PLAIN"), "sasl_password": "no-such"}),
        "Invalid username or password",
    ),
    "authority": (lambda k: (k.login, {**k.settings(), "ssl_cafile": k.wrong_cafile}), "CERTIFICATE_VERIFY"),
    "mechanism": (lambda k: (k.login, k.settings("SCRAM-SHA-256")), "UnsupportedSaslMechanism"),
    "no certificate": (
        lambda k: (k.mutual, {"security_protocol": "SSL", "ssl_cafile": k.cafile}),
        "is SSL what this port speaks|CERTIFICATE_REQUIRED|certificate required",
    ),
    "no tls": (lambda k: (k.login, {}), r"is PLAINTEXT what this port speaks\?"),
    "tls to a plain port": (lambda k: (k.plain, k.settings()), "SASL_SSL what this port speaks|SSL"),
}


@pytest.mark.parametrize("wrong", WRONG)
async def test_what_is_wrong_is_said_in_bounded_time(kafka: SecureKafka, wrong: str) -> None:
    make, words = WRONG[wrong]
    bootstrap, settings = make(kafka)
    client = edgeway.Client(f"kafka://{bootstrap}", **settings)
    began = time.monotonic()
    with pytest.raises(KafkaUnreachable, match=words) as caught:
        await client.open()
    assert time.monotonic() - began < WITHIN_S
    assert bootstrap in str(caught.value)
    assert "no-such" not in str(caught.value)


async def test_all_of_it_in_a_url(kafka: SecureKafka) -> None:
    login = f"alice:{quote(PASSWORD, safe='')}@{kafka.login}"
    url = f"kafka+ssl://{login}?sasl_mechanism=PLAIN&ssl_cafile={kafka.cafile}"
    async with edgeway.Client(url) as client:
        assert PASSWORD not in repr(client)
        assert (await client.submit("echo", inputs={"text": "x"})).id


def test_a_file_that_is_no_certificate_is_named(kafka: SecureKafka, rules: Path) -> None:
    settings = {**kafka.settings(), "ssl_cafile": rules}
    with (
        pytest.raises((UsageError, ValueError), match=r"ssl_cafile = .*rules\.json"),
        edgeway.SyncClient(f"kafka://{kafka.login}", **settings),
    ):
        pass


def test_commands_and_roles_say_it_too(
    kafka: SecureKafka, rules: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDGEWAY_SASL_PASSWORD", "no-such")
    words = [*flags(kafka.login, kafka.settings()), "--rules", str(rules)]
    for command in (["topics", "apply"], ["up"], ["router"], ["send", "--task", "t"]):
        began = time.monotonic()
        more = words[:-2] if command[0] == "send" else words
        assert main([*command, *more]) == 3, command
        assert time.monotonic() - began < WITHIN_S
        said = capsys.readouterr().err
        assert "SaslAuthenticationFailed" in said
        assert "no-such" not in said


@pytest.mark.slow
async def test_roles_with_a_certificate(kafka: SecureKafka, rules: Path) -> None:
    role = role_on(kafka.mutual, kafka.mutual_settings(), rules)
    try:
        role.wait_ready()
        async with edgeway.Client(f"kafka://{kafka.mutual}", **kafka.mutual_settings()) as client:
            results = [r async for r in client.map((str(n) for n in range(200)), "echo")]
        assert [r.output for r in results] == [str(n) for n in range(200)]
        assert role.terminate() == 0
    finally:
        role.kill()
