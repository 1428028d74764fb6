"""What computes is chosen by what is there and works; how busy the GPU is comes from NVML."""

from __future__ import annotations

import logging
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import onnxruntime
import pytest

from schemas.cards import Card
from tests.helpers.lanes import FakeClock
from tests.helpers.shared_data import crayfish
from workers.backends import Computes, gpu, registry
from workers.backends.gpu import Meter
from workers.backends.onnx import OnnxBackend
from workers.backends.providers import CPU, CUDA, OPENVINO, TENSORRT, choose
from workers.errors import LoadError
from workers.models.calibrated import Calibrated
from workers.worker import Worker

CARD = Card(capability="vision/digits", side="local", version="1", model="m", model_type="onnx", max_batch=8)


class Runtime:
    """A runtime whose providers raise, fall back silently, or work."""

    def __init__(self, *, raising: tuple[str, ...] = (), silent: tuple[str, ...] = ()) -> None:
        self.raising, self.silent = raising, silent
        self.tried: list[list[str]] = []

    def __call__(self, names: list[str]) -> Any:
        self.tried.append(names)
        if names[0] in self.raising:
            raise RuntimeError(f"{names[0]}: libcudart.so.12 is missing")
        got = [name for name in names if name not in self.silent]
        return SimpleNamespace(get_providers=lambda: got)


@pytest.mark.parametrize(
    ("available", "chosen"),
    [
        ([TENSORRT, CUDA, CPU], TENSORRT),
        ([CPU, CUDA, TENSORRT], TENSORRT),
        ([CUDA, CPU], CUDA),
        ([OPENVINO, CPU], OPENVINO),
        (["AzureExecutionProvider", CPU], CPU),
        ([CPU], CPU),
    ],
)
def test_the_best_that_is_there_computes_whatever_order_they_are_listed_in(
    available: list[str], chosen: str
) -> None:
    make = Runtime()
    assert choose(make, available, "x").provider == chosen
    assert make.tried == [[chosen] if chosen == CPU else [chosen, CPU]]


@pytest.mark.parametrize("how", ["raising", "silent"])
def test_what_does_not_work_is_passed_over_and_the_log_says_why(
    how: str, caplog: pytest.LogCaptureFixture
) -> None:
    make = Runtime(**{how: (TENSORRT, CUDA)})
    with caplog.at_level(logging.WARNING):
        assert choose(make, [TENSORRT, CUDA, CPU], "vision/x").provider == CPU
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]
    assert f"vision/x: {CUDA} does not load" in caplog.text
    if how == "raising":
        assert "libcudart.so.12 is missing" in caplog.text


def test_what_is_asked_for_is_there_or_refused() -> None:
    assert choose(Runtime(), [CUDA, CPU], "x", ["cpu"]).provider == CPU
    assert choose(Runtime(), [TENSORRT, CUDA, CPU], "x", ["CUDAExecutionProvider"]).provider == CUDA
    assert choose(Runtime(silent=(CUDA,)), [CUDA, CPU], "x", ["cuda", "cpu"]).provider == CPU
    with pytest.raises(LoadError, match=r"x: CUDAExecutionProvider is not in this build.*CPUExecution"):
        choose(Runtime(), [CPU], "x", ["cuda"])
    with pytest.raises(LoadError, match="its libraries or its device are missing"):
        choose(Runtime(silent=(CUDA,)), [CUDA, CPU], "x", ["cuda"])
    with pytest.raises(LoadError, match="no provider"):
        choose(Runtime(), [], "x")


async def test_the_real_runtime_says_what_computes_and_refuses_what_is_not_there() -> None:
    backend = OnnxBackend(CARD, crayfish(), sources={"input": "pixels"})
    assert isinstance(backend, Computes)
    assert backend.provider == ""
    worker = Worker([backend], name="w", clock=FakeClock())
    await worker.start()
    live = worker.offers()[0].live
    assert (live.provider, live.gpu) == (CPU, None)
    await worker.stop(1.0)
    assert CUDA not in onnxruntime.get_available_providers(), "this machine has no GPU"
    forced = registry.build(CARD, {"path": crayfish(), "providers": ["cuda"]})
    with pytest.raises(LoadError, match=r"model\.onnx.*CUDAExecutionProvider is not in this build"):
        await forced.load()
    with pytest.raises(LoadError, match="optimisation is one of"):
        await registry.build(CARD, {"path": crayfish(), "optimisation": "most"}).load()


async def test_a_calibrated_backend_passes_on_what_computes(tmp_path: Path) -> None:
    card = tmp_path / "card.json"
    card.write_text(
        '{"name": "m", "version": "1", "capability": "vision/digits", "side": "local", "labels": []}'
    )
    inner = OnnxBackend(CARD, crayfish(), sources={"input": "pixels"})
    try:
        made = Calibrated(inner, card)
    except LoadError as error:
        pytest.fail(str(error))
    await made.load()
    assert isinstance(made, Computes)
    assert (made.provider, made.gpu(), made.one_by_one) == (CPU, None, False)
    made.close()


class Nvml:
    """A stand-in for pynvml."""

    class NVMLError(Exception): ...

    def __init__(self, *shares: int | Exception, init: Exception | None = None) -> None:
        self.shares, self.init = list(shares), init
        self.asked = 0
        self.handles: list[Any] = []

    def nvmlInit(self) -> None:  # noqa: N802
        if self.init is not None:
            raise self.init

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Any:  # noqa: N802
        self.handles.append(index)
        return index

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> Any:  # noqa: N802
        self.handles.append(uuid)
        return uuid

    def nvmlDeviceGetUtilizationRates(self, handle: Any) -> Any:  # noqa: N802
        self.asked += 1
        found = self.shares[min(self.asked, len(self.shares)) - 1]
        if isinstance(found, Exception):
            raise found
        return SimpleNamespace(gpu=found, memory=1)


def shown(meter: Meter, wanted: float | None) -> bool:
    until = time.monotonic() + 5
    while meter.share() != wanted and time.monotonic() < until:
        time.sleep(0.005)
    return meter.share() == wanted


def test_the_meter_shows_the_last_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "EVERY_S", 0.01)
    nvml = Nvml(37, 80)
    meter = Meter(0, nvml, {})
    assert meter.share() in (None, 0.37, 0.8), "it is asked in a thread"
    assert shown(meter, 0.8)
    assert nvml.handles == [0]
    meter.close()


def test_a_driver_that_hangs_holds_nobody_up() -> None:
    gate = threading.Event()

    class Hanging(Nvml):
        def nvmlInit(self) -> None:  # noqa: N802
            gate.wait(20)

    meter = Meter(0, Hanging(1), {})
    began = time.monotonic()
    assert meter.share() is None
    assert time.monotonic() - began < 0.5
    meter.close()
    gate.set()


@pytest.mark.parametrize("nvml", [None, Nvml(init=Nvml.NVMLError("no driver")), Nvml(Nvml.NVMLError("lost"))])
def test_without_an_answer_there_is_no_figure(nvml: Any) -> None:
    meter = Meter(0, nvml, {})
    for _ in range(5):
        assert meter.share() is None
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("visible", "device", "handle"), [("2,5", 1, 5), ("GPU-abc,GPU-def", 1, "GPU-def"), ("3", 0, 3)]
)
def test_devices_count_among_those_that_may_be_seen(visible: str, device: int, handle: Any) -> None:
    nvml = Nvml(50)
    meter = Meter(device, nvml, {"CUDA_VISIBLE_DEVICES": visible})
    assert shown(meter, 0.5)
    assert nvml.handles == [handle]
    meter.close()


def test_a_device_that_may_not_be_seen_has_no_figure() -> None:
    nvml = Nvml(50)
    meter = Meter(3, nvml, {"CUDA_VISIBLE_DEVICES": "0"})
    meter.share()
    time.sleep(0.05)
    assert meter.share() is None
    assert nvml.asked == 0


async def test_a_backend_on_a_gpu_asks_the_meter_of_its_device(monkeypatch: pytest.MonkeyPatch) -> None:
    meters = {1: Meter(1, Nvml(25), {})}
    monkeypatch.setattr(gpu, "_METERS", meters)
    backend = OnnxBackend(CARD, crayfish(), device=1)
    backend.provider = CUDA
    backend.gpu()
    assert shown(meters[1], 0.25)
    assert backend.gpu() == 0.25
    meters[1].close()
