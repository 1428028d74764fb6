"""`POST /local/<capability>` and `/cloud/<capability>`: a body as a worker's own door takes it."""

from __future__ import annotations

import uuid
from collections.abc import Iterable

from starlette.requests import Request as Http

from edgeway.gateway.problems import refused
from edgeway.gateway.reading import BODY_S, Asked, format_of_body, is_form_of_curl
from edgeway.roles.bodies import Held, read_body
from schemas.limits import MAX_RECORD_BYTES
from schemas.messages import Request
from workers.http.calls import check_encoding, check_length, kind_of, read_call, too_large
from workers.http.paths import Name, full


async def read_capability_call(http: Http, held: Held, names: Iterable[Name]) -> Asked:
    """The request of one step that a call asks for; its task is the path, `local/nlp/summarize`.

    Raises:
        Refused: there is no such capability in the rules, or the body cannot be read.
    """
    name = named(http.url.path, names)
    content_type = http.headers.get("content-type", "")
    kind = format_of_body(content_type) if is_form_of_curl(content_type) else kind_of(content_type)
    check_length(http.headers.get("content-length"))
    check_encoding(http.headers.get("content-encoding"))
    body = await read_body(http, held, most=MAX_RECORD_BYTES, within_s=BODY_S, too_large=too_large)
    call = read_call(kind, body, http.headers)
    if call.max_batch is not None:
        raise refused(
            "invalid_request", "max_batch: a worker's own door takes it; the rules have one for a step"
        )
    request = Request(
        id=call.id or uuid.uuid4().hex,
        task=full(name).strip("/"),
        inputs=call.row.inputs,
        params=call.row.params,
        deadline_ms=call.deadline_ms,
    )
    return Asked(request, "json" if kind == "json" else "msgpack", call.wire)


def named(path: str, names: Iterable[Name]) -> Name:
    """The capability at `path`: its whole name, or the end of it where one alone on that side has it.

    Raises:
        Refused: 404; it lists what there is.
    """
    side, _, wanted = path.strip("/").partition("/")
    ours = sorted(name for name in names if name[0] == side)
    exact = [name for name in ours if name[1] == wanted]
    chosen = exact or [name for name in ours if wanted and name[1].endswith(f"/{wanted}")]
    if len(chosen) == 1:
        return chosen[0]
    shown = ", ".join(map(full, chosen or ours)) or "none"
    what = "several have this name" if chosen else "the rules have no capability of this name; there are"
    raise refused("unknown_capability", f"{what}: {shown}")
