"""The published schemas: JSON Schema of all structs and of the rules file, and an AsyncAPI 3 document.

`python -m schemas.generate` writes them to docs/schemas; `--check` says which are out of date and exits 1.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import msgspec

from schemas import cards, messages
from schemas.asyncapi import document
from schemas.ids import MAX_ID_BYTES
from schemas.messages import VERSION, Message
from schemas.rules import RulesFile, TaskRule

FOLDER = Path("docs/schemas")
DIALECT = "https://json-schema.org/draft/2020-12/schema"
_DEFS = "#/$defs/{name}"
KINDS: tuple[type[Message], ...] = (
    messages.Request,
    messages.Plan,
    messages.Partial,
    messages.Checkpoint,
    messages.Subtask,
    messages.Result,
    messages.Feedback,
    messages.Cancel,
    cards.Heartbeat,
)


def message_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of every struct, under `$defs`; a valid document is one of the messages."""
    return {
        "$schema": DIALECT,
        "title": "Edgeway messages",
        "description": "Records as JSON; msgpack has the same keys, and bytes where JSON has base64.",
        "oneOf": [{"$ref": _DEFS.format(name=kind.__name__)} for kind in KINDS],
        "$defs": struct_schemas(_DEFS),
    }


def struct_schemas(template: str) -> dict[str, Any]:
    """The schema of every struct by name, with references of the form `template`."""
    _, found = msgspec.json.schema_components(KINDS, ref_template=template)
    for kind in KINDS:
        versions = {"type": "integer", "minimum": VERSION - 1, "maximum": VERSION, "default": VERSION}
        found[kind.__name__]["properties"]["v"] = versions
    _loosen(found["Request"])
    return dict(sorted(found.items()))


def _loosen(request: dict[str, Any]) -> None:
    """A request as any producer may write it: see `codec.decode_request`."""
    request["required"] = []
    request["properties"]["id"]["anyOf"][0] |= {"minLength": 1, "maxLength": MAX_ID_BYTES}
    request["properties"]["privacy_level"] = {
        "type": "string",
        "pattern": "^([Hh][Ii][Gg][Hh]|[Nn][Oo][Rr][Mm][Aa][Ll]|[Ll][Oo][Ww])$",
        "description": "another spelling of `privacy`",
    }
    request["additionalProperties"] = True
    request["description"] += "\n\nFurther keys are read as if they stood in `inputs`."


def rules_schema() -> dict[str, Any]:
    """JSON Schema of the rules file, in both of its forms."""
    (whole, task), defs = msgspec.json.schema_components((RulesFile, TaskRule), ref_template=_DEFS)
    own = {key: value for key, value in defs["RulesFile"]["properties"].items() if key != "tasks"}
    flat = {
        "type": "object",
        "description": "The tasks by name, beside the file's own keys.",
        "properties": own,
        "additionalProperties": task,
        "not": {"required": ["tasks"]},
    }
    return {
        "$schema": DIALECT,
        "title": "Edgeway rules",
        "if": {"required": ["tasks"]},
        "then": whole,
        "else": flat,
        "$defs": dict(sorted(defs.items())),
    }


def documents() -> dict[str, str]:
    """The text of each published file, by its name."""
    made = {
        "edgeway.schema.json": message_schema(),
        "rules.schema.json": rules_schema(),
        "asyncapi.json": document(KINDS, struct_schemas("#/components/schemas/{name}")),
    }
    return {name: json.dumps(content, indent=2, ensure_ascii=False) + "\n" for name, content in made.items()}


def stale(folder: Path) -> list[str]:
    """Names of the published files that are missing in `folder` or differ."""
    return [
        name
        for name, text in documents().items()
        if not (folder / name).is_file() or (folder / name).read_text(encoding="utf-8") != text
    ]


def main(arguments: list[str] | None = None) -> int:
    """The command; returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m schemas.generate", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 where one is out of date")
    parser.add_argument("--folder", type=Path, default=FOLDER, help=f"where the files lie (default {FOLDER})")
    options = parser.parse_args(arguments)
    old = stale(options.folder)
    if options.check:
        if old:
            sys.stderr.write(f"out of date: {', '.join(old)}; run `python -m schemas.generate`\n")
        return 1 if old else 0
    options.folder.mkdir(parents=True, exist_ok=True)
    for name in old:
        (options.folder / name).write_text(documents()[name], encoding="utf-8")
        sys.stdout.write(f"wrote {options.folder / name}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
