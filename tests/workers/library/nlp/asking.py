"""Asks a capability of the library as a worker does."""

from __future__ import annotations

import asyncio
from typing import Any

from workers.backends import Answer, Backend, Row


def ask(backend: Backend, inputs: dict[str, Any], **params: Any) -> Answer:
    (answer,) = backend.infer([Row(inputs, params)])
    return answer


def output(backend: Backend, inputs: dict[str, Any], **params: Any) -> Any:
    answer = ask(backend, inputs, **params)
    assert answer.error is None, answer.error
    return answer.output


def refusal(backend: Backend, inputs: dict[str, Any], **params: Any) -> str:
    answer = ask(backend, inputs, **params)
    assert answer.error is not None, answer.output
    assert answer.error.code == "bad_input"
    return answer.error.message


def loaded(backend: Backend) -> Backend:
    asyncio.run(backend.load())
    return backend
