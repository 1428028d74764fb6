"""The tracer of one process: where its roles leave the spans of requests that somebody traces."""

from __future__ import annotations

import asyncio
import os
import socket

from edgeway.otlp import Exporter, headers_of, sender
from edgeway.roles.process import Process
from edgeway.versions import version
from streams.tracing import Tracer

STOP_S = 1.5


def tracer_for(process: Process) -> Tracer | None:
    """The one tracer of `process`; None where its settings name no `otlp`.

    Raises:
        UsageError: the extra `otel` is not installed, or the file of headers cannot be used.
    """
    have = process.settings
    if have.otlp is None:
        return None
    known: Tracer | None = process.shared.get("tracer")
    if known is not None:
        return known
    resource = {
        "service.name": f"edgeway-{process.name}",
        "service.version": version(),
        "service.instance.id": process.slot or f"{socket.gethostname()}-{os.getpid()}",
    }
    exporter = Exporter(sender(have.otlp, headers_of(have.otlp_headers_file), resource))
    process.shared["tracer"] = exporter

    async def stop() -> None:
        await asyncio.to_thread(exporter.stop, STOP_S)

    async def start() -> None:
        exporter.start()
        # By now every role has named what it ends with; their last spans come before.
        process.after.append(stop)

    process.before.append(start)
    return exporter
