"""INT8 copies of ONNX models: smaller, on many machines faster, and measured before anybody serves them.

`dynamic` stores weights as eight bits and measures the range of activations at run time: for models whose
time goes into matrix products. `static` fixes these ranges from samples beforehand: for convolutions too.
"""

from __future__ import annotations

import json
import logging
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from workers.backends import Answer, Row
from workers.backends.onnx import OnnxBackend
from workers.backends.tensors import Feeds
from workers.errors import BadInput, LoadError
from workers.models.cards import read_card, register, statement_of
from workers.models.evidence import Rightness, Sample, is_right, parted, rightness
from workers.models.local_store import sizes_of
from workers.models.manifest import ACTIVE, CARD, CHECK, MANIFEST
from workers.models.offering import backend_of, card_of, options_of
from workers.models.ready import load
from workers.models.timing import Speed, answers_of, race

log = logging.getLogger(__name__)

Method = Literal["dynamic", "static"]
METHODS: tuple[Method, ...] = get_args(Method)
SHARE = 0.3
"""The share of the samples that calibrates where no others are given for that."""


class Wanted(NamedTuple):
    """`max_loss`: how much accuracy may be lost (without labels: how much agreement), as a share.

    `calibrate` are samples for `static`; without them SHARE of `samples` are taken, and do not judge.
    """

    method: Method
    samples: Sequence[Sample]
    calibrate: Sequence[Sample] = ()
    max_loss: float = 0.01


class Side(NamedTuple):
    """A model as measured."""

    bytes: int
    speed: Speed
    right: Rightness


class Report(NamedTuple):
    """Both models on the same samples. `loss` is accuracy lost, or agreement missing where no sample has a
    label; `allowed` whether that is within the bound."""

    method: Method
    samples: int
    before: Side
    after: Side
    loss: float
    max_loss: float

    @property
    def allowed(self) -> bool:
        return self.loss <= self.max_loss + 1e-12


def quantized(folder: Path, target: Path, version: str, wanted: Wanted) -> Report:
    """Write the INT8 model of `folder` and its card, of `version`, to the folder `target`. Blocks.

    The card says what was measured. The calibration of its confidence is fitted anew where the samples have
    labels, and else left out: it was of the other model. Other files of the folder come along.

    Raises:
        LoadError: it is no ONNX model, has nothing to quantize, or `onnx` is not installed.
        BadInput: samples that the model refuses, or too few.
    """
    document = read_card(folder)
    card = card_of(document, str(folder / CARD))
    if card.model_type != "onnx":
        raise LoadError(f"{card.model} is of kind {card.model_type}; only onnx models are quantized")
    if "quantized" in document:
        raise LoadError(f"{card.model} {card.version} is an INT8 copy itself; quantize the version it is of")
    first, judging = list(wanted.calibrate), list(wanted.samples)
    if wanted.method == "static" and not first:
        first, judging = parted(judging, SHARE)
    if not judging:
        raise BadInput("no samples are left to judge by; give more of them")
    source = Path(options_of(document, folder)["path"])
    name = source.relative_to(folder)
    _bring_along(folder, target, but=name)
    (target / name).parent.mkdir(parents=True, exist_ok=True)
    _convert(source, target / name, wanted.method, _feeds(folder, first) if first else None)
    fresh = {key: value for key, value in document.items() if key not in ("calibration", "quality")}
    _write_card(target, {**fresh, "version": version})
    measured = _measured(folder, target, (source, target / name), judging, wanted)
    _write_card(target, {**fresh, "version": version, **_said(card.version, measured.report)})
    stated = statement_of(document)
    if stated is not None:
        _calibrate(target, judging, measured.answers, stated.threshold)
    return measured.report


def told(report: Report) -> dict[str, Any]:
    """A report as JSON."""

    def side(found: Side) -> dict[str, Any]:
        return {
            "bytes": found.bytes,
            "single_ms": round(found.speed.single_ms, 4),
            "rows_per_s": round(found.speed.rows_per_s, 1),
            "accuracy": None if found.right.accuracy is None else round(found.right.accuracy, 4),
            "refused": round(found.right.refused, 4),
        }

    return {
        "method": report.method,
        "samples": report.samples,
        "before": side(report.before),
        "after": side(report.after),
        "agreement": round(report.after.right.agreement, 4),
        "loss": round(report.loss, 4),
        "max_loss": report.max_loss,
        "allowed": report.allowed,
    }


def _said(of: str, report: Report) -> dict[str, Any]:
    about = told(report)
    accuracy, before = about["after"]["accuracy"], about["before"]["accuracy"]
    seen = f"accuracy {accuracy:.2%} (before {before:.2%})" if accuracy is not None else "no labels"
    quality = f"INT8 ({report.method}) of {of}: {seen}, agreement {about['agreement']:.2%}"
    return {"quality": f"{quality} on {report.samples} samples", "quantized": {"of": of, **about}}


class _Measured(NamedTuple):
    report: Report
    answers: list[Answer]


def _measured(
    folder: Path, target: Path, files: tuple[Path, Path], samples: Sequence[Sample], wanted: Wanted
) -> _Measured:
    with _loaded(folder) as one, _loaded(target) as other:
        rows = [Row(sample.inputs, sample.params) for sample in samples]
        before, after = answers_of(one, rows), answers_of(other, rows)
        if all(answer.error is not None for answer in before):
            raise BadInput(f"the model refuses every sample: {before[0].error.message}")  # type: ignore[union-attr]
        rights = (rightness(samples, before, before), rightness(samples, after, before))
        if rights[0].accuracy == 0.0:
            # Of nothing nothing can be lost: any copy would pass.
            raise BadInput("the model as it is answers no labelled sample right: are these its labels?")
        speeds = race(one, other, rows)
    sizes = [file.stat().st_size for file in files]
    sides = [Side(*parts) for parts in zip(sizes, speeds, rights, strict=True)]
    report = Report(wanted.method, len(samples), sides[0], sides[1], _loss(*rights), wanted.max_loss)
    return _Measured(report, after)


def _calibrate(target: Path, samples: Sequence[Sample], answers: Sequence[Answer], threshold: float) -> None:
    """Fit the calibration anew, where enough samples have labels."""
    pairs = [
        (answer.confidence, is_right(answer.output, sample.label))
        for sample, answer in zip(samples, answers, strict=True)
        if sample.label is not None and answer.confidence is not None
    ]
    try:
        sure, right = zip(*pairs, strict=True)
        register(target, sure, right, threshold=threshold, fitted_on="the samples of its quantization")
    except ValueError as error:
        log.warning("the INT8 model's confidence is not calibrated: %s", error)


def _loss(before: Rightness, after: Rightness) -> float:
    if before.accuracy is None or after.accuracy is None:
        return 1.0 - after.agreement
    return before.accuracy - after.accuracy


@contextmanager
def _loaded(folder: Path) -> Iterator[Any]:
    backend = backend_of(folder)
    load(backend)
    try:
        yield backend
    finally:
        backend.close()


def _feeds(folder: Path, samples: Sequence[Sample]) -> list[Feeds]:
    """What the model is given for each sample.

    Raises:
        BadInput: it refuses one.
    """
    document = read_card(folder)
    backend = OnnxBackend(
        card_of(document, str(folder / CARD)),
        options_of(document, folder)["path"],
        sources=options_of(document, folder).get("sources"),
        providers=["cpu"],
    )
    load(backend)
    try:
        return [backend.feeds([Row(sample.inputs, sample.params)]) for sample in samples]
    finally:
        backend.close()


def _convert(source: Path, target: Path, method: Method, feeds: list[Feeds] | None) -> None:
    try:
        from onnxruntime.quantization import quant_pre_process
    except ImportError as error:
        raise LoadError("quantizing needs the onnx package: pip install 'edgeway[quantize]'") from error
    # It tells the root logger to prepare the model, which was done a line ago.
    logging.getLogger("root").addFilter(_is_ours)
    try:
        with tempfile.TemporaryDirectory(prefix="edgeway-quantize-") as name:
            prepared = Path(name) / "prepared.onnx"
            quant_pre_process(str(source), str(prepared), skip_symbolic_shape=True)
            _write_int8(prepared, target, method, feeds)
    except Exception as error:
        raise LoadError(f"{source.name} cannot be quantized: {type(error).__name__}: {error}") from error
    finally:
        logging.getLogger("root").removeFilter(_is_ours)
    if _is_float(target):
        raise LoadError(f"{source.name} has nothing that {method} quantization takes; it stays as it is")


def _write_int8(prepared: Path, target: Path, method: Method, feeds: list[Feeds] | None) -> None:
    from onnxruntime.quantization import (
        CalibrationDataReader,
        QuantFormat,
        QuantType,
        quantize_dynamic,
        quantize_static,
    )

    if method == "dynamic":
        # Unsigned weights: signed ones times unsigned activations overflow on a CPU without VNNI.
        quantize_dynamic(str(prepared), str(target), weight_type=QuantType.QUInt8)
        return

    class Reader(CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self._left = iter(feeds or ())

        def get_next(self) -> Feeds | None:
            return next(self._left, None)

    quantize_static(
        str(prepared),
        str(target),
        Reader(),
        quant_format=QuantFormat.QDQ,
        activation_type=QuantType.QInt8,
        weight_type=QuantType.QInt8,
        per_channel=True,
    )


def _is_float(path: Path) -> bool:
    """Whether no node of a model works on eight bits."""
    import onnx

    nodes = onnx.load(str(path), load_external_data=False).graph.node
    return not any("Quantize" in node.op_type or "Integer" in node.op_type for node in nodes)


def _is_ours(record: logging.LogRecord) -> bool:
    return "pre-process" not in record.getMessage()


def _write_card(folder: Path, card: dict[str, Any]) -> None:
    text = json.dumps(card, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    (folder / CARD).write_text(text, encoding="utf-8")


def _bring_along(folder: Path, target: Path, but: Path) -> None:
    """Copy what stands beside the model, such as a vocabulary."""
    for path, _size in sorted(sizes_of(folder).items()):
        if path not in (MANIFEST, CHECK, ACTIVE, CARD, str(but)):
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(folder / path, target / path)
