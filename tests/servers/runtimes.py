"""Models for a real MLServer: numpy alone, seeded, so that a test can compute what the server has to say."""

from __future__ import annotations

import asyncio

import numpy as np
from mlserver import MLModel
from mlserver.codecs import NumpyCodec, StringCodec
from mlserver.types import InferenceRequest, InferenceResponse

SEED = 784


def weights() -> np.ndarray:
    """The matrix of `Dense`: 784 pixels to 10 classes."""
    return np.random.default_rng(SEED).standard_normal((784, 10)).astype(np.float32) / 28


class Dense(MLModel):
    """Images `input` [n, 1, 784] to logits `logits` [n, 10]."""

    async def load(self) -> bool:
        self._weights = weights()
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        images = NumpyCodec.decode_input(payload.inputs[0])
        if images.shape[1:] != (1, 784):
            raise ValueError(f"images are [n, 1, 784], these are {list(images.shape)}")
        logits = images.astype(np.float32).reshape(len(images), 784) @ self._weights
        return InferenceResponse(
            id=payload.id, model_name=self.name, outputs=[NumpyCodec.encode_output("logits", logits)]
        )


class Upper(MLModel):
    """Texts `text` [n, 1] to the same in capitals, `upper`, and their lengths in characters, `length`."""

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        texts = StringCodec.decode_input(payload.inputs[0])
        lengths = np.array([[len(text)] for text in texts], np.int64)
        return InferenceResponse(
            id=payload.id,
            model_name=self.name,
            outputs=[
                StringCodec.encode_output("upper", [text.upper() for text in texts]),
                NumpyCodec.encode_output("length", lengths),
            ],
        )


class Echo(MLModel):
    """Every input comes back under its name; the parameter `sleep_s` of the request is waited for before."""

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        asked = payload.parameters.model_extra if payload.parameters else None
        await asyncio.sleep(float((asked or {}).get("sleep_s", 0.0)))
        outputs = [NumpyCodec.encode_output(i.name, NumpyCodec.decode_input(i)) for i in payload.inputs]
        return InferenceResponse(id=payload.id, model_name=self.name, outputs=outputs)


class Slow(MLModel):
    """Answers with the number that it was given, after as many milliseconds."""

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        wait = NumpyCodec.decode_input(payload.inputs[0])
        await asyncio.sleep(float(wait.max()) / 1000)
        return InferenceResponse(
            id=payload.id, model_name=self.name, outputs=[NumpyCodec.encode_output("waited_ms", wait)]
        )
