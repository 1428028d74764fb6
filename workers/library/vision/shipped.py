"""The models that lie beside this file: where they are, what their cards say, and how they are run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workers.models.cards import read_card

MODELS = Path(__file__).parent / "models"


class Shipped:
    """One model; `run` takes and gives arrays. It is loaded once, on one thread."""

    def __init__(self, name: str, version: str) -> None:
        self.name, self.version = name, version
        self.folder = MODELS / name / version
        self.about: dict[str, Any] = read_card(self.folder)
        self._session: Any = None

    def load(self) -> None:
        """Read the model, and run it once on zeros."""
        if self._session is not None:
            return
        import onnxruntime as ort

        options = ort.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        session = ort.InferenceSession(
            str(self.folder / "model.onnx"), options, providers=["CPUExecutionProvider"]
        )
        (given,) = session.get_inputs()
        session.run(None, {given.name: np.zeros((1, *given.shape[1:]), np.float32)})
        self._session = session

    def run(self, pixels: NDArray[np.float32]) -> dict[str, NDArray[np.float32]]:
        """The outputs by name; the first axis is the images."""
        self.load()
        names = [output.name for output in self._session.get_outputs()]
        found = self._session.run(names, {self._session.get_inputs()[0].name: pixels})
        return dict(zip(names, found, strict=True))
