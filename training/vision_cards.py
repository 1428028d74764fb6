"""What the scripts of the vision models share: their sources, their sessions, their cards."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import onnxruntime as ort

MODELS = Path(__file__).parent.parent / "workers" / "library" / "vision" / "models"


def session(model: bytes) -> Any:
    """A session of one thread, as the workers have them."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def write(name: str, version: str, files: dict[str, bytes], card: dict[str, Any]) -> Path:
    """The model's folder: its files and `card.json` with their digests."""
    folder = MODELS / name / version
    folder.mkdir(parents=True, exist_ok=True)
    for file, content in files.items():
        (folder / file).write_bytes(content)
    digests = {file: hashlib.sha256(content).hexdigest() for file, content in files.items()}
    whole = {"name": name, "version": version, **card, "sha256": digests}
    (folder / "card.json").write_text(json.dumps(whole, indent=2, ensure_ascii=False) + "\n")
    return folder


def checked(path: Path, digest: str) -> bytes:
    """A source file's content.

    Raises:
        SystemExit: it is not there, or another.
    """
    if not path.is_file():
        raise SystemExit(f"{path} is not there; the script's first lines say how to get it")
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != digest:
        raise SystemExit(f"{path} is not the file that this script was written for")
    return content
