"""llama.cpp's own HTTP server: `python serve_llama.py MODEL PORT {chat,embeddings}`."""

from __future__ import annotations

import sys
import threading

import xllamacpp

CONTEXT, SLOTS = 4096, 4
"""Tokens of all requests together, and requests at a time."""


def main(model: str, port: int, use: str) -> None:
    """Serve until the process ends."""
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.model_alias = {"tiny"}
    params.hostnames, params.port = ["127.0.0.1"], port
    params.n_ctx, params.n_parallel = CONTEXT, SLOTS
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.warmup = params.ui = False
    params.cache_ram_mib = 0
    if use == "embeddings":
        params.embedding = True
        params.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
    server = xllamacpp.Server(params)
    threading.Event().wait()
    del server


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
