"""`local/file/type`: what kind of file some bytes are, by their content."""

from __future__ import annotations

import threading
from typing import Any

from schemas.cards import Card
from workers.errors import BadInput
from workers.library.fetch import Fetcher
from workers.library.source import SourceBackend

CARD = Card(
    capability="file/type",
    side="local",
    version="1",
    model="magika-standard-v3.3",
    max_batch=8,
    cacheable=True,
    licence="Apache-2.0",
    source="Magika standard_v3_3 of Google, in the wheel of magika 1.0",
    quality="16 of 16 files of as many kinds that the tests make or have; published: about 99% on 200 kinds",
    description="What kind of file some bytes are, by their content.",
)


class FileTypeBackend(SourceBackend):
    """Takes `file` (bytes, base64 or a data URL) or `file_url`; gives `{"label", "mime", "group",
    "description", "extensions", "is_text", "guess", "size"}`. `guess` is the model's own label where another
    one is told, else None. The confidence is the model's score.
    """

    def __init__(self, *, fetcher: Fetcher | None = None) -> None:
        self._lock = threading.Lock()
        self._magika: Any = None
        super().__init__(CARD, self._look_at, key="file", load=self._ready, fetcher=fetcher)

    def _ready(self) -> None:
        with self._lock:
            if self._magika is None:
                self._magika = _loaded()

    def _look_at(self, raw: bytes, _: dict[str, Any], __: dict[str, Any]) -> Any:
        if not raw:
            raise BadInput("inputs.file is empty")
        self._ready()
        found = self._magika.identify_bytes(raw)
        label, guess = str(found.output.label), str(found.dl.label)
        output = {
            "label": label,
            "mime": found.output.mime_type,
            "group": found.output.group,
            "description": found.output.description,
            "extensions": list(found.output.extensions),
            "is_text": found.output.is_text,
            "guess": guess if guess not in (label, "undefined") else None,
            "size": len(raw),
        }
        return output, min(1.0, max(0.0, float(found.score)))


def _loaded() -> Any:
    import onnxruntime as ort
    from magika import Magika

    class OneThread(Magika):
        # The package's own session takes every core of the machine and spins on them.
        def _init_onnx_session(self) -> Any:
            options = ort.SessionOptions()
            options.intra_op_num_threads = options.inter_op_num_threads = 1
            return ort.InferenceSession(self._model_path, options, providers=["CPUExecutionProvider"])

    return OneThread()
