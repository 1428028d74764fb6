"""How busy a GPU is, by NVML where it answers; asked in a thread, so that no heartbeat waits for it."""

from __future__ import annotations

import importlib
import logging
import os
import threading
from collections.abc import Mapping
from typing import Any

from streams import metrics

log = logging.getLogger(__name__)

EVERY_S = 1.0


class Meter:
    """The utilisation of one GPU, in [0, 1], asked every EVERY_S once somebody has asked for it.

    `device` counts among those that this process may see. `nvml` is the module `pynvml` (package
    nvidia-ml-py), None where it is not installed: then, and where the driver does not answer, there is no
    figure.
    """

    def __init__(self, device: int, nvml: Any, seen: Mapping[str, str] = os.environ) -> None:
        self._device = device
        self._nvml = nvml
        self._visible = seen.get("CUDA_VISIBLE_DEVICES")
        self._share: float | None = None
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def share(self) -> float | None:
        """The last figure; never waits."""
        with self._lock:
            if self._thread is None and self._nvml is not None:
                self._thread = threading.Thread(target=self._watch, name="gpu meter", daemon=True)
                self._thread.start()
        return self._share

    def close(self) -> None:
        """Ask no more."""
        self._ended.set()

    def _watch(self) -> None:
        try:
            self._nvml.nvmlInit()
            handle = self._handle()
            while not self._ended.is_set():
                self._share = self._nvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100.0
                metrics.GPU.labels(str(self._device)).set(self._share)
                self._ended.wait(EVERY_S)
        except (self._nvml.NVMLError, ValueError, IndexError) as error:
            # No driver, a device that was lost, a slice of one that has no such figure.
            self._share = None
            log.info("the GPU's utilisation is not known: %s", error)

    def _handle(self) -> Any:
        if self._visible is None:
            return self._nvml.nvmlDeviceGetHandleByIndex(self._device)
        name = self._visible.split(",")[self._device].strip()
        if name.isdigit():
            return self._nvml.nvmlDeviceGetHandleByIndex(int(name))
        return self._nvml.nvmlDeviceGetHandleByUUID(name)


_METERS: dict[int, Meter] = {}


def meter(device: int) -> Meter:
    """The meter of a device; one a process."""
    if device not in _METERS:
        try:
            nvml = importlib.import_module("pynvml")
        except ModuleNotFoundError:
            log.info("the GPU's utilisation is not shown: install edgeway[gpu]")
            nvml = None
        _METERS[device] = Meter(device, nvml)
    return _METERS[device]
