"""Where settings come from: flags, then EDGEWAY_* variables, then a TOML file, then the defaults."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from streams.settings import checks
from streams.settings.errors import SettingsError
from streams.settings.model import DEFAULTS, TABLE, Settings, flag_of, variable_of

CONFIG_NAME = "edgeway.toml"
CONFIG_VARIABLE = "EDGEWAY_CONFIG"
_OTHER_VARIABLES = frozenset(
    {CONFIG_VARIABLE, "EDGEWAY_KAFKA_VERSION", "EDGEWAY_CACHE_DIR", "EDGEWAY_MAVEN_URL"}
)

_SECRETS = {"sasl_password": "password", "http_token": "token"}
"""Settings that may also come from the first line of a file, NAME_file; none of them is ever shown."""


class Given(NamedTuple):
    """A value as it was given, where (for messages), and how strongly that counts (larger wins)."""

    value: Any
    origin: str
    rank: int


@dataclass(frozen=True, slots=True)
class Toml:
    """The text of a TOML file and its path, for messages."""

    path: Path
    text: str


def find_config(flag: str | None, env: Mapping[str, str], folder: Path) -> Toml | None:
    """The settings file: that of the flag, of EDGEWAY_CONFIG, or `edgeway.toml` in `folder` where it is.

    Raises:
        SettingsError: a file that was named cannot be read.
    """
    named = flag or env.get(CONFIG_VARIABLE)
    path = Path(named).expanduser() if named else folder / CONFIG_NAME
    if not named and not path.exists():
        return None
    origin = "--config" if flag else CONFIG_VARIABLE if named else CONFIG_NAME
    try:
        return Toml(path, path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as exc:
        raise SettingsError([f"{origin}: cannot read {path}: {exc}; name a readable TOML file"]) from exc


def resolve(flags: Mapping[str, Any], env: Mapping[str, str], toml: Toml | None = None) -> Settings:
    """The settings. `flags` holds only those that were given, by name, as text.

    Raises:
        SettingsError: with every problem there is, one a line.
    """
    problems: list[str] = []
    given = dict(_from_toml(toml, problems)) if toml is not None else {}
    given |= dict(_from_env(env))
    given |= {name: Given(value, flag_of(name), 3) for name, value in flags.items() if value is not None}
    values = dict(DEFAULTS)
    origins: dict[str, Given] = {}
    for name, entry in given.items():
        try:
            values[name] = TABLE[name].kind.read(entry.value)
            origins[name] = entry
        except ValueError as exc:
            problems.append(f"{entry.origin}{_shown(name, entry.value)}: {exc}")
    if not problems:
        for name in _SECRETS:
            _read_secret(name, values, origins, problems)
        problems += checks.conflicts(values, {name: entry.origin for name, entry in origins.items()})
    if problems:
        raise SettingsError(problems)
    return Settings(**values)  # type: ignore[arg-type]


def strange_variables(env: Mapping[str, str]) -> list[str]:
    """A line for each EDGEWAY_* variable that is none of ours but looks like a misspelt one."""
    known = {variable_of(name) for name in TABLE} | _OTHER_VARIABLES
    lines = []
    for name in sorted(env):
        near = difflib.get_close_matches(name, known, 1, 0.85) if name.startswith("EDGEWAY_") else []
        if near and name not in known:
            lines.append(f"{name} is no setting and is ignored; did you mean {near[0]}?")
    return lines


def _from_env(env: Mapping[str, str]) -> Iterator[tuple[str, Given]]:
    for name in TABLE:
        variable = variable_of(name)
        text = env.get(variable, "")
        # A Kubernetes service called `edgeway` puts EDGEWAY_PORT=tcp://10.0.0.1:80 into every pod beside it.
        if text and not (name == "port" and text.startswith("tcp://")):
            yield name, Given(text, variable, 2)


def _from_toml(toml: Toml, problems: list[str]) -> Iterator[tuple[str, Given]]:
    try:
        table = tomllib.loads(toml.text)
    except tomllib.TOMLDecodeError as exc:
        problems.append(f"{toml.path}: no valid TOML: {exc}")
        return
    for key, value in table.items():
        origin = f"{toml.path}:{_line(toml.text, key)}: {key}"
        if key in TABLE and not isinstance(value, dict):
            yield key, Given(value, origin, 1)
            continue
        if isinstance(value, dict):
            problems.append(
                f"{origin}: [{key}] is a table; all keys stand at the top level: write NAME = VALUE"
            )
            continue
        near = difflib.get_close_matches(key.replace("-", "_"), TABLE, 1, 0.6)
        mend = f"did you mean {near[0]}?" if near else "docs/settings.md has the table of settings"
        problems.append(f"{origin} is no setting; {mend}")


def _line(text: str, key: str) -> int:
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(rf"""\s*(\[+\s*)?["']?{re.escape(key)}["']?\s*[=.\]]""", line):
            return number
    return 1


def _shown(name: str, value: object) -> str:
    if name in _SECRETS:
        return ""
    if name == "redis" and isinstance(value, str):
        value = re.sub(r"//.*@|\?.*", lambda found: "//***@" if found[0][0] == "/" else "?***", value)
    return f" = {value!r}"


def _read_secret(
    name: str, values: dict[str, Any], origins: Mapping[str, Given], problems: list[str]
) -> None:
    """A secret from its file, unless it was given more strongly itself."""
    file = origins.get(f"{name}_file")
    direct = origins.get(name)
    if file is None or (direct is not None and direct.rank > file.rank):
        return
    try:
        with values[f"{name}_file"].open(encoding="utf-8") as stream:
            values[name] = TABLE[name].kind.read(stream.readline().rstrip("\r\n"))
    except (OSError, ValueError) as exc:
        problems.append(f"{file.origin}: no {_SECRETS[name]} in the first line: {exc}")
