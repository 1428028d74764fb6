"""`docs/settings.md`, made from the table: `python -m streams.settings.document > docs/settings.md`."""

from __future__ import annotations

import sys
from typing import Any

from streams.settings.model import DEFAULTS, TABLE, commands_of, flag_of, variable_of

HEAD = """# Settings

<!-- Made by `python -m streams.settings.document > docs/settings.md`; a test holds it current. -->

Each setting can be given as a flag, as an environment variable, or in a TOML file; the first of these counts,
and a default stands behind them. The file is the one of `--config FILE`, else of `EDGEWAY_CONFIG`, else
`edgeway.toml` in the working folder. All its keys stand at the top level; a key that is no setting is an
error. An empty variable counts as not set.

```toml
kafka = "kafka1:9092,kafka2:9092"
rules = "rules.json"
window_bytes = "64MiB"
```

Everything is checked at the start of a command: each wrong value is named with its place and the mend, and
the command ends with exit code 2. Passwords have no flag and are never shown.

| setting | flag | variable | value | default | commands | what it is |
|---|---|---|---|---|---|---|
"""


def document() -> str:
    """The page as Markdown."""
    return HEAD + "".join(_row(name) for name in TABLE)


def _row(name: str) -> str:
    about = TABLE[name]
    flag = f"`{flag_of(name)}`" if about.flag else "(none)"
    commands = ", ".join(f"`{command}`" for command in commands_of(about.group))
    cells = (
        f"`{name}`",
        flag,
        f"`{variable_of(name)}`",
        about.kind.name,
        _default(DEFAULTS[name], about.kind.name),
        commands,
        about.help,
    )
    return "| " + " | ".join(cells) + " |\n"


def _default(value: Any, kind: str) -> str:
    if value is None or value == ():
        return "(not set)"
    if isinstance(value, bool):
        return "`yes`" if value else "`no`"
    if kind == "bytes":
        return f"`{value // 2**20}MiB`"
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


if __name__ == "__main__":
    sys.stdout.write(document())
