"""What computes an ONNX model: the best execution provider that is there and works."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from workers.errors import LoadError

log = logging.getLogger(__name__)

CPU = "CPUExecutionProvider"
CUDA = "CUDAExecutionProvider"
TENSORRT = "TensorrtExecutionProvider"
OPENVINO = "OpenVINOExecutionProvider"
ORDER = (TENSORRT, CUDA, OPENVINO, CPU)
SHORT = {"tensorrt": TENSORRT, "cuda": CUDA, "openvino": OPENVINO, "cpu": CPU}
ON_GPU = frozenset({TENSORRT, CUDA})

Make = Callable[[list[str]], Any]
"""Makes a session with these providers, the first preferred; it has `get_providers()`."""


class Chosen(NamedTuple):
    """A session and what computes it."""

    session: Any
    provider: str


def named(name: str) -> str:
    """`cuda` or `CUDAExecutionProvider` to the latter."""
    return SHORT.get(name.lower(), name)


def choose(
    make: Make, available: Sequence[str], capability: str, wanted: Sequence[str] | None = None
) -> Chosen:
    """The session of the first provider that is there and works: of `wanted` in its order, else of ORDER.

    A provider may be in the build of ONNX Runtime and not work, as CUDA without its driver: the runtime then
    falls back by itself or raises. Either way the next one is tried, and the log says why.

    Raises:
        LoadError: none of `wanted` is there and works; or the model itself cannot be loaded.
    """
    order = [named(name) for name in wanted] if wanted else [name for name in ORDER if name in available]
    reasons: list[str] = []
    cause: Exception | None = None
    for name in order:
        reason = f"is not in this build of ONNX Runtime, which has {', '.join(available)}"
        if name in available:
            try:
                session = make([name] if name == CPU else [name, CPU])
            except Exception as error:  # noqa: BLE001 - the runtime raises a kind of its own for each provider
                cause, reason = error, f"does not load: {error}"
            else:
                got = session.get_providers()
                if got and got[0] == name:
                    return Chosen(session, name)
                reason = "does not load here; its libraries or its device are missing"
        reasons.append(f"{name} {reason}")
        if wanted is None and name != CPU:
            log.warning("%s: %s; trying the next provider", capability, reasons[-1])
    raise LoadError(f"{capability}: {'; '.join(reasons) or 'no provider is available'}") from cause
