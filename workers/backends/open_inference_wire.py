"""What the two ways to a server, REST and gRPC, have in common."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, NamedTuple, Protocol, TypeVar

from schemas.cards import Card
from workers.backends import Call
from workers.backends.open_inference_codec import Tensor
from workers.backends.open_inference_model import Model
from workers.errors import Away, BadInput, LoadError

T = TypeVar("T")

READY_S = 10.0
"""How long `load` waits for a server that is not ready."""
_AGAIN_S = 0.3
LEAST_LOOK_S = 1.0

_RESERVED = frozenset(
    {"binary_data", "binary_data_output", "binary_data_size", "priority", "timeout"}
    | {"sequence_id", "sequence_start", "sequence_end", "classification", "shared_memory_region"}
)
"""Parameters that change the wire's format, or how other callers' requests are treated."""


class Place(NamedTuple):
    """A model on a server; `version` may be empty: the server's choice."""

    model: str
    version: str = ""

    def __str__(self) -> str:
        return f"model {self.model!r}" + (f" version {self.version!r}" if self.version else "")


class Ask(NamedTuple):
    """One call: its inputs, the outputs wanted (none: all), parameters, and its id, which stays the same
    where the call is made again.
    """

    inputs: tuple[Tensor, ...]
    outputs: tuple[str, ...]
    params: Mapping[str, bool | int | float | str]
    id: str


class NotYet(Exception):
    """The server cannot be asked yet; the text says why. `away`: that may pass of itself, and speaks of no
    wrong option.
    """

    def __init__(self, text: str, *, away: bool = False) -> None:
        super().__init__(text)
        self.away = away


class Wire(Protocol):
    """A way to a server."""

    @property
    def host(self) -> str:
        """The server's name, for messages."""

    @property
    def reachable(self) -> bool | None:
        """Whether the server is there, by the last calls and looks. From any thread."""

    def start(self) -> None:
        """Make ready. Starting twice is nothing.

        Raises:
            LoadError: a key, a file or a package that is not there.
        """

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """What `work` gives, from this wire's loop. Blocks."""

    async def look(self) -> Model:
        """What the server tells of the model.

        Raises:
            NotYet: it is not there or not ready, or has no such model (now).
            LoadError: it never will.
        """

    async def infer(self, card: Card, ask: Ask, call: Call) -> list[Tensor]:
        """The model's outputs.

        Raises:
            Trouble: none within the call's time.
            BadInput: what the server or the wire cannot take.
        """

    def close(self) -> None: ...


async def awaited(
    look: Callable[[], Awaitable[Model]], ready_s: float, least_s: float = LEAST_LOOK_S
) -> Model:
    """What `look` finds, asked again for up to `ready_s` while the server is not ready; one look may take
    `least_s` in any case.

    Raises:
        Away: it is not there or not ready by then.
        LoadError: it is, and something else is wrong.
    """
    until = time.monotonic() + ready_s
    while True:
        left_s = max(least_s, until - time.monotonic())
        away: NotYet
        try:
            async with asyncio.timeout(left_s):
                return await look()
        except NotYet as error:
            away = error
        except TimeoutError:
            away = NotYet(f"the server gave no answer within {left_s:.0f} s", away=True)
        if time.monotonic() + _AGAIN_S > until:
            raise (Away if away.away else LoadError)(str(away)) from away.__cause__
        await asyncio.sleep(_AGAIN_S)


def parameters(params: Mapping[str, Any]) -> dict[str, bool | int | float | str]:
    """A row's params as parameters of a request.

    Raises:
        BadInput: the protocol has no word for one, or keeps it for itself.
    """
    for name, value in params.items():
        if name in _RESERVED:
            raise BadInput(f"params.{name} is kept for the protocol itself")
        if not isinstance(value, bool | int | float | str):
            raise BadInput(f"params.{name} is a {type(value).__name__}; models take text, numbers and flags")
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise BadInput(f"params.{name} is beyond 64 bits")
    return dict(params)
