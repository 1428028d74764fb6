"""What a gRPC status means, and what it costs: pure.

https://grpc.github.io/grpc/core/md_doc_statuscodes.html; Triton, KServe and MLServer say INVALID_ARGUMENT of
inputs, NOT_FOUND of models, UNAVAILABLE of full queues, and INTERNAL or UNKNOWN where a model failed.
"""

from __future__ import annotations

from workers.backends.remote_faults import Trouble

UNREACHED = "cannot be reached"

_FINAL = {
    "UNAUTHENTICATED": "the key is missing or refused",
    "PERMISSION_DENIED": "the key is missing or refused, or may not do this",
    "NOT_FOUND": "it has no such model, or no longer this version of it",
    "UNIMPLEMENTED": "it does not speak the Open Inference Protocol here; look at its port",
}
_UNCONNECTED = ("failed to connect", "dns resolution failed", "name resolution failure", "no addresses")
_MOST_DIGITS = 9


def trouble_of(code: str, details: str, pushback_ms: str | None = None) -> Trouble:
    """The trouble of a status by its name. `details` is looked at and not told: it may quote inputs.

    `pushback_ms` is the header `grpc-retry-pushback-ms`: the wait that the server asks for.
    """
    said = details.lower()
    after_s = _seconds(pushback_ms)
    if code in _FINAL:
        return Trouble(f"answered {code}: {_FINAL[code]}", free=True, there=True)
    if code in ("INVALID_ARGUMENT", "OUT_OF_RANGE"):
        text = f"answered {code}: it refuses these inputs"
        return Trouble(text, code="bad_input", free=True, there=True)
    if code == "DEADLINE_EXCEEDED":
        return Trouble("gave no answer in time", there=False)
    if code == "RESOURCE_EXHAUSTED":
        return _exhausted(said, after_s)
    if code == "UNAVAILABLE":
        return _unavailable(said, after_s)
    if code in ("ABORTED", "CANCELLED"):
        return Trouble(f"answered {code}: it gave the call up", passing=True, after_s=after_s)
    return Trouble(f"answered {code}: it failed", there=True)


def _exhausted(said: str, after_s: float | None) -> Trouble:
    if "larger than max" not in said:
        text = "answered RESOURCE_EXHAUSTED: too many calls"
        return Trouble(text, free=True, passing=True, after_s=after_s)
    if "client:" in said:
        return Trouble("answered more bytes than are read; max_answer_bytes is the limit", code="bad_output")
    text = "answered RESOURCE_EXHAUSTED: the request has more bytes than it reads"
    return Trouble(text, code="bad_input", free=True)


def _unavailable(said: str, after_s: float | None) -> Trouble:
    if "certificate" in said:
        return Trouble("shows a certificate that is not trusted; ca_file names others", free=True)
    if "handshake" in said or "ssl_error" in said:
        return Trouble("speaks no TLS that is understood here", free=True)
    if any(words in said for words in _UNCONNECTED):
        return Trouble(UNREACHED, free=True, passing=True, there=False)
    # Between these two nobody knows whether the model ran: the connection may have been cut after that.
    text = "answered UNAVAILABLE: it is overloaded, or the connection was cut"
    return Trouble(text, free=after_s is not None, passing=True, after_s=after_s, there=False)


def _seconds(pushback_ms: str | None) -> float | None:
    if pushback_ms is None or not pushback_ms.isascii() or not pushback_ms.isdigit():
        return None
    return int(pushback_ms) / 1000 if len(pushback_ms) <= _MOST_DIGITS else float("inf")
