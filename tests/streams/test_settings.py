"""Settings: sources and their order, checks, secrets, the document."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from streams.settings import (
    Secret,
    Settings,
    SettingsError,
    client_options,
    duration_ms,
    find_config,
    resolve,
    strange_variables,
)
from streams.settings.document import document
from streams.settings.model import DEFAULTS, GROUPS, TABLE, commands_of
from streams.settings.sources import Toml

ROOT = Path(__file__).parents[2]


def toml(text: str) -> Toml:
    return Toml(Path("edgeway.toml"), text)


def problems(
    flags: dict[str, str] | None = None, env: dict[str, str] | None = None, text: str = ""
) -> tuple[str, ...]:
    with pytest.raises(SettingsError) as caught:
        resolve(flags or {}, env or {}, toml(text))
    return caught.value.problems


def test_defaults_stand_when_nothing_is_given() -> None:
    settings = resolve({}, {})
    assert settings == Settings()
    assert (settings.session_timeout_ms, settings.heartbeat_ms, settings.commit_ms) == (6000, 500, 200)
    assert settings.window_bytes == 64 * 1024 * 1024
    assert settings.kafka is None
    assert settings.bootstrap == "127.0.0.1:9092"


def test_a_flag_beats_a_variable_beats_the_file() -> None:
    env = {"EDGEWAY_PARTITIONS": "8", "EDGEWAY_COMMIT_MS": "100"}
    settings = resolve({"partitions": "9"}, env, toml("partitions = 7\ncommit_ms = 50\ndrain_s = 1.5\n"))
    assert (settings.partitions, settings.commit_ms, settings.drain_s) == (9, 100, 1.5)


def test_a_flag_that_was_not_given_and_an_empty_variable_do_not_count() -> None:
    assert resolve({"slot": None}, {"EDGEWAY_SLOT": ""}, toml('slot = "a"')).slot == "a"


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("kafka", "kafka://a:9092,b:9093", "a:9092,b:9093"),
        ("kafka", "[::1]:9092", "[::1]:9092"),
        ("redis", "memory", None),
        ("redis", "redis://h:6379/0", "redis://h:6379/0"),
        ("window_bytes", "2MiB", 2 * 1024 * 1024),
        ("drain_s", "500ms", 0.5),
        ("session_timeout_ms", "10s", 10_000),
        ("capabilities", "local/nlp/intent, cloud/nlp/intent", ("local/nlp/intent", "cloud/nlp/intent")),
        ("security_protocol", "plaintext", "PLAINTEXT"),
        ("metrics", "no", False),
        ("leave_on_stop", "YES", "yes"),
    ],
)
def test_values_are_read(name: str, text: str, value: object) -> None:
    assert getattr(resolve({name: text}, {}), name) == value
    assert getattr(resolve({}, {f"EDGEWAY_{name.upper()}": text}), name) == value


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("kafka", "localhost"),
        ("kafka", "kafka://"),
        ("kafka", "a:99999"),
        ("redis", "localhost:6379"),
        ("redis", "redis://h:port/0"),
        ("redis", "redis://h:99999/0"),
        ("redis", "redis://[::1/0"),
        ("partitions", "0"),
        ("partitions", "six"),
        ("port", "70000"),
        ("window_bytes", "64 elephants"),
        ("drain_s", "-1"),
        ("side", "moon"),
        ("capabilities", "nlp/intent"),
        ("rules", "no-such-file.json"),
        ("metrics", "perhaps"),
        ("slot", "  "),
        ("log_level", "loud"),
    ],
)
def test_a_wrong_value_names_flag_or_variable_value_and_mend(name: str, text: str) -> None:
    (line,) = problems({name: text})
    assert line.startswith(f"--{name.replace('_', '-')} = {text!r}: ")
    (line,) = problems(env={f"EDGEWAY_{name.upper()}": text})
    assert line.startswith(f"EDGEWAY_{name.upper()} = {text!r}: ")
    assert len(line.split(": ", 1)[1]) > 8


@pytest.mark.parametrize(
    "url",
    ["redis://:se#cret@h:1/0", "redis://:se/cret@h:1/0", "http://u:secret@h", "redis://h?passwort=secret"],
)
def test_the_password_of_a_redis_that_cannot_be_used_is_not_shown(url: str) -> None:
    (line,) = problems({"redis": url})
    assert "cret" not in line
    assert line.startswith("--redis = ")
    assert "***" in line


def test_a_wrong_value_in_the_file_names_its_line() -> None:
    (line,) = problems(text='# note\nslot = "a"\n\npartitions = "many"\n')
    assert line == "edgeway.toml:4: partitions = 'many': give a whole number from 1 to 10000"


def test_an_unknown_key_names_the_nearest_one() -> None:
    (line,) = problems(text="\npartition = 3\n")
    assert line == "edgeway.toml:2: partition is no setting; did you mean partitions?"
    (line,) = problems(text="[zzz]\na = 1\n")
    assert line.startswith("edgeway.toml:1: zzz: ")
    assert "top level" in line


def test_all_problems_are_told_at_once() -> None:
    assert len(problems({"side": "x"}, {"EDGEWAY_PORT": "x"}, "bogus_key = 1\nslot = 3\n")) == 4


def test_no_toml_at_all_is_one_problem() -> None:
    (line,) = problems(text="partitions = = 3")
    assert line.startswith("edgeway.toml: no valid TOML: ")
    assert "line 1" in line


def test_toml_types_count_too() -> None:
    settings = resolve(
        {}, {}, toml('metrics = false\ncapabilities = ["local/a"]\ndrain_s = 2\nleave_on_stop = true\n')
    )
    assert (settings.metrics, settings.capabilities, settings.drain_s) == (False, ("local/a",), 2.0)
    assert settings.leave_on_stop == "yes"
    assert problems(text="partitions = true")
    assert problems(text="slot = 5")


def test_kubernetes_service_link_is_no_port() -> None:
    assert resolve({}, {"EDGEWAY_PORT": "tcp://10.0.0.1:80"}).port is None
    assert problems({"port": "tcp://10.0.0.1:80"})


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"heartbeat_ms": "3000"}, "--heartbeat-ms and --session-timeout-ms (default): "),
        ({"commit_ms": "2000"}, "a quarter of the session"),
        ({"drain_s": "20"}, "longer than a stop"),
        ({"batch_records": "3000"}, "does not fit a window of 2000"),
        ({"sasl_username": "u"}, "has no login"),
        ({"security_protocol": "SASL_SSL", "sasl_username": "u"}, "--sasl-password-file"),
        ({"ssl_cafile": __file__}, "has no certificates"),
        ({"ssl_keyfile": __file__, "security_protocol": "SSL"}, "give ssl_certfile"),
    ],
)
def test_settings_that_do_not_go_together(flags: dict[str, str], words: str) -> None:
    (line,) = problems(flags)
    assert words in line


def test_secrets_show_nowhere(tmp_path: Path) -> None:
    env = {
        "EDGEWAY_SASL_PASSWORD": "hunter2",
        "EDGEWAY_SASL_USERNAME": "u",
        "EDGEWAY_SECURITY_PROTOCOL": "SASL_PLAINTEXT",
    }
    settings = resolve({}, env)
    assert settings.sasl_password == Secret("hunter2")
    shown = f"{settings!r} {settings} {settings.sasl_password} {dataclasses.asdict(settings)}"
    assert "hunter2" not in shown
    options = client_options(settings)
    assert options["sasl_plain_password"] == "hunter2"
    assert "hunter2" not in "\n".join(
        problems(env=env | {"EDGEWAY_SASL_PASSWORD": "hunter2", "EDGEWAY_SIDE": "x"})
    )
    assert "hunter2" not in "\n".join(problems(text="sasl_password = ['hunter2']"))


def test_password_file_and_which_password_counts(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("from-file\nsecond line\n")
    base = {"security_protocol": "SASL_PLAINTEXT", "sasl_username": "u"}

    def password(flags: dict[str, str], env: dict[str, str], text: str = "") -> str | None:
        found = resolve(base | flags, env, toml(text)).sasl_password
        return found and found.reveal()

    assert password({"sasl_password_file": str(file)}, {"EDGEWAY_SASL_PASSWORD": "env"}) == "from-file"
    assert password({}, {"EDGEWAY_SASL_PASSWORD": "env"}, f'sasl_password_file = "{file}"') == "env"
    file.write_text("")
    assert "no password in the first line" in problems(base | {"sasl_password_file": str(file)})[0]


def test_client_options_for_tls(tmp_path: Path) -> None:
    assert client_options(Settings(kafka="a:1,b:2")) == {
        "bootstrap_servers": ["a:1", "b:2"],
        "security_protocol": "PLAINTEXT",
    }
    settings = resolve({"security_protocol": "SSL", "ssl_check_hostname": "no"}, {})
    assert client_options(settings)["ssl_context"].check_hostname is False
    bad = tmp_path / "ca.pem"
    bad.write_text("no certificate")
    with pytest.raises(SettingsError, match="ssl_cafile"):
        client_options(resolve({"security_protocol": "SSL", "ssl_cafile": str(bad)}, {}))


def test_the_file_is_looked_for_in_order(tmp_path: Path) -> None:
    assert find_config(None, {}, tmp_path) is None
    (tmp_path / "edgeway.toml").write_text("partitions = 1")
    (tmp_path / "env.toml").write_text("partitions = 2")
    (tmp_path / "flag.toml").write_text("partitions = 3")
    env = {"EDGEWAY_CONFIG": str(tmp_path / "env.toml")}

    def found(flag: str | None, env: dict[str, str]) -> int:
        return resolve({}, {}, find_config(flag, env, tmp_path)).partitions

    assert found(None, {}) == 1
    assert found(None, env) == 2
    assert found(str(tmp_path / "flag.toml"), env) == 3
    with pytest.raises(SettingsError, match="EDGEWAY_CONFIG: cannot read"):
        find_config(None, {"EDGEWAY_CONFIG": str(tmp_path / "none")}, tmp_path)


def test_misspelt_variables_are_told_and_others_left_alone() -> None:
    env = {
        "EDGEWAY_KAFAK": "x",
        "EDGEWAY_SERVICE_HOST": "10.0.0.1",
        "EDGEWAY_KAFKA": "a:1",
        "EDGEWAY_KAFKA_VERSION": "4",
    }
    assert strange_variables(env) == [
        "EDGEWAY_KAFAK is no setting and is ignored; did you mean EDGEWAY_KAFKA?"
    ]


@pytest.mark.parametrize(
    ("text", "ms"), [("10m", 600_000), ("1h", 3_600_000), ("30", 30_000), ("1.5s", 1500)]
)
def test_durations(text: str, ms: int) -> None:
    assert duration_ms(text) == ms


def test_no_duration() -> None:
    with pytest.raises(ValueError, match="10m or 1h"):
        duration_ms("soon")


def test_every_default_passes_its_own_check() -> None:
    for name, about in TABLE.items():
        default = DEFAULTS[name]
        if default is not None and default != ():
            text = ("yes" if default else "no") if isinstance(default, bool) else str(default)
            assert about.kind.read(text) == default, name
        assert commands_of(about.group), name
    assert all(
        group in {about.group for about in TABLE.values()} for groups in GROUPS.values() for group in groups
    )


def test_the_document_is_current() -> None:
    page = (ROOT / "docs" / "settings.md").read_text("utf-8")
    assert page == document(), "run: python -m streams.settings.document > docs/settings.md"


def test_a_folder_called_edgeway_toml_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "edgeway.toml").mkdir()
    with pytest.raises(SettingsError, match="cannot read"):
        find_config(None, {}, tmp_path)


def test_a_table_is_told_to_be_at_the_wrong_level() -> None:
    (line,) = problems(text='[kafka]\naddress = "x"\n')
    assert "top level" in line
