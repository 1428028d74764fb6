from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import edgeway
from edgeway.client.connection import KAFKA_NAMES, address_of
from edgeway.errors import UsageError

SECRET = "s3cret/p@ss"
QUOTED = "s3cret%2Fp%40ss"


def settings_of(url: str | None, env: dict[str, str] | None = None, **given: Any) -> Any:
    return address_of(url, given, env or {}).settings


def test_a_url_alone() -> None:
    assert settings_of("kafka://a:1,b,[::1]:3").kafka == "a:1,b:9092,[::1]:3"
    assert settings_of("a:1").kafka == "a:1"
    assert settings_of(None).bootstrap == "127.0.0.1:9092"
    assert settings_of("kafka+ssl://a").security_protocol == "SSL"
    assert settings_of("kafka://a/").security_protocol == "PLAINTEXT"


def test_a_user_and_settings_in_the_url() -> None:
    found = settings_of(
        f"kafka://me:{QUOTED}@host:1?security_protocol=sasl_ssl&sasl_mechanism=SCRAM-SHA-512&"
        f"ssl_cafile={__file__}&ssl_check_hostname=no"
    )
    assert (found.security_protocol, found.sasl_mechanism) == ("SASL_SSL", "SCRAM-SHA-512")
    assert (found.sasl_username, found.sasl_password.reveal()) == ("me", SECRET)
    assert (found.ssl_cafile, found.ssl_check_hostname) == (Path(__file__), False)
    assert settings_of(f"kafka+ssl://me:{QUOTED}@host").security_protocol == "SASL_SSL"
    assert settings_of(f"kafka+sasl://me:{QUOTED}@host").security_protocol == "SASL_PLAINTEXT"


def test_arguments_win_over_the_url_and_both_over_the_environment() -> None:
    env = {
        "EDGEWAY_KAFKA": "env:1",
        "EDGEWAY_SASL_PASSWORD": SECRET,
        "EDGEWAY_SASL_USERNAME": "env",
        "EDGEWAY_SECURITY_PROTOCOL": "SASL_PLAINTEXT",
        "EDGEWAY_PARTITIONS": "nonsense",
    }
    found = settings_of("kafka://url:2?sasl_username=url", env, sasl_username="argument")
    assert (found.kafka, found.sasl_username, found.sasl_password.reveal()) == ("url:2", "argument", SECRET)
    assert settings_of(None, env).kafka == "env:1"
    assert settings_of("kafka://url?sasl_username=url", env).sasl_username == "url"


def test_http() -> None:
    found = address_of("https://gateway:8443/edge/", {"ssl_cafile": Path(__file__)}, {})
    assert (found.kind, found.shown) == ("http", "https://gateway:8443/edge")
    assert found.settings.ssl_cafile == Path(__file__)
    assert address_of("http://[::1]:80", {}, {"EDGEWAY_KAFKA": "x"}).shown == "http://[::1]:80"


@pytest.mark.parametrize(
    ("url", "given", "said"),
    [
        ("redis://a", {}, "scheme 'redis'"),
        ("kafka://", {}, "names no host"),
        ("kafka://a?sasl_usrname=x", {}, "did you mean sasl_username"),
        ("kafka://a?novalue", {}, "no NAME=VALUE"),
        ("kafka://a", {"securityprotocol": "SSL"}, "did you mean security_protocol"),
        ("kafka://a", {"rules": "x"}, "'rules' is no argument"),
        ("kafka://a", {"security_protocol": "TLS"}, "security_protocol = 'TLS': give one of PLAINTEXT"),
        ("kafka://me@a", {}, "PLAINTEXT has no login"),
        ("kafka+ssl://me@a", {}, "SASL_SSL needs sasl_password"),
        ("kafka://a", {"ssl_cafile": "/there/is/none"}, "ssl_cafile = '/there/is/none'"),
        ("http://me:{}@a", {}, "no user or password: give token"),
        ("http://a:b", {}, "cannot be read"),
        ("http://a?x=1", {}, "without ?"),
        ("http://a", {"ssl_cafile": __file__}, "for https:// only"),
        ("http://a", {"sasl_username": "x"}, "'sasl_username' is no argument"),
    ],
)
def test_what_cannot_be_used_is_said(url: str, given: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        address_of(url.format(QUOTED), given, {})
    assert said in str(caught.value)
    assert "--" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "more"),
    [
        (f"kafka://me:{QUOTED}@host:x?security_protocol=SASL_SSL", {}),
        (f"kafka://me:{QUOTED}@host?security_protocol=nonsense", {}),
        (f"kafka://me:{QUOTED}@host", {}),
        (f"kafka://me:{QUOTED}@", {}),
        (f"kafka://host?sasl_password={QUOTED}&oops=1", {}),
        (f"kafka://host?sasl_password={QUOTED}&oops", {}),
        (f"http://me:{QUOTED}@host", {}),
        (f"kafka:/me:{QUOTED}@host", {}),
        ("kafka://host", {"sasl_password": SECRET, "sasl_username": "me"}),
        ("kafka://host", {"token": SECRET}),
        ("http://host", {"token": f"{SECRET}\r\nx: y"}),
        ("http://host", {"token": f"{SECRET} {SECRET}"}),
        ("http://host", {"token": f"{SECRET}é"}),
    ],
)
def test_no_secret_is_told(url: str, more: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as caught:
        edgeway.Client(url, **more)
    assert "s3cret" not in str(caught.value)
    assert caught.value.__cause__ is None or "s3cret" not in str(caught.value.__cause__)


def test_no_secret_is_shown() -> None:
    url = f"kafka://me:{QUOTED}@host:1?security_protocol=SASL_SSL"
    for client in (
        edgeway.Client(url),
        edgeway.SyncClient(url),
        edgeway.HttpClient("http://host:1", token=SECRET),
    ):
        assert "s3cret" not in repr(client)
        assert "host:1" in repr(client)
        assert "s3cret" not in str(vars(client))


def test_every_setting_of_kafka_is_an_argument() -> None:
    assert {"security_protocol", "sasl_password_file", "ssl_keyfile"} <= set(KAFKA_NAMES)


def test_an_http_client_takes_no_kafka() -> None:
    with pytest.raises(UsageError, match="http://HOST:PORT"):
        edgeway.HttpClient("kafka://host:1")
    with pytest.raises(UsageError, match="http://HOST:PORT"):
        edgeway.SyncHttpClient("kafka://host:1")
