"""ONNX models on the ONNX Runtime: on a GPU or by OpenVINO where these are there, else on the CPU."""

from __future__ import annotations

import asyncio
import logging
import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from schemas.cards import Card
from workers.backends import Answer, Row, kin_of, providers
from workers.backends.gpu import meter
from workers.backends.tensors import Array, ClassPost, Feed, Feeds, Post, Pre, TensorPost, TensorPre
from workers.errors import BadInput, BadOutput, BadRows, LoadError, failure_of

log = logging.getLogger(__name__)

_LEVELS = {
    "all": "ORT_ENABLE_ALL",
    "extended": "ORT_ENABLE_EXTENDED",
    "basic": "ORT_ENABLE_BASIC",
    "none": "ORT_DISABLE_ALL",
}
_DTYPES = {
    "tensor(float)": "float32",
    "tensor(double)": "float64",
    "tensor(float16)": "float16",
    "tensor(int64)": "int64",
    "tensor(int32)": "int32",
    "tensor(uint8)": "uint8",
    "tensor(int8)": "int8",
}


class OnnxBackend:
    """One ONNX model as a capability.

    Without `pre` every model input is read from the subtask's input of the same name, or from the name that
    `sources` gives for it (`{"input": "pixels"}`). Without `post` every model output is a list of numbers.
    `warm_rows` are run at load; without them, and with the ready-made `pre`, zeros of the model's shape are.

    Without `providers` the best of TensorRT, CUDA, OpenVINO and the CPU that works here computes; with them
    (`["cuda"]`) the first that works, and none other. `intra_threads` share the work of one run: that makes
    a run shorter at the cost of CPU; for throughput raise `model_threads` instead. Waiting threads sleep
    unless `spinning`. `optimisation` is that of the graph: all, extended, basic or none.
    """

    def __init__(
        self,
        card: Card,
        path: str | Path,
        *,
        pre: Pre | None = None,
        post: Post | None = None,
        sources: Mapping[str, str] | None = None,
        intra_threads: int = 1,
        inter_threads: int = 1,
        providers: Sequence[str] | None = None,
        device: int = 0,
        spinning: bool = False,
        optimisation: str = "all",
        warm_rows: Sequence[Row] = (),
    ) -> None:
        self.card = card
        self._path = Path(path)
        self._pre, self._post = pre, post or TensorPost()
        self._sources = dict(sources or {})
        self._threads = (intra_threads, inter_threads)
        self._wanted = providers
        self._device = device
        self._spinning = spinning
        self._optimisation = optimisation
        self.provider = ""
        self._warm_rows = tuple(warm_rows)
        self._session: Any = None
        self._names: list[str] = []
        self._ready_made: TensorPre | None = None
        self._exact: int | None = None

    async def load(self) -> None:
        await asyncio.to_thread(self._load)

    def kin(self, row: Row) -> Hashable:
        return self._ready_made.kin(row) if self._ready_made else kin_of(row)

    def feeds(self, rows: Sequence[Row]) -> Feeds:
        """The model's inputs for `rows`, which are of one kin.

        Raises:
            BadRows: some are refused.
            LoadError: it is not loaded.
        """
        if self._pre is None or self._session is None:
            raise LoadError(f"{self.card.capability} is not loaded; await load() first")
        return self._pre(rows)

    def infer(self, rows: Sequence[Row]) -> list[Answer]:
        try:
            feeds = self.feeds(rows)
        except BadRows as refused:
            return self._without(rows, refused)
        outputs = self._outputs(feeds, len(rows))
        return self._post(dict(zip(self._names, outputs, strict=True)), rows)

    def close(self) -> None:
        self._session = None

    def gpu(self) -> float | None:
        """How busy its GPU is, None where it runs on none."""
        return meter(self._device).share() if self.provider in providers.ON_GPU else None

    def _outputs(self, feeds: Feeds, rows: int) -> list[Array]:
        """A run; where the model takes a fixed number of rows, the last one fills the missing places."""
        exact = self._exact
        if exact is None or rows >= exact:
            found: list[Array] = self._session.run(self._names, feeds)
            return found
        full = {
            name: np.concatenate([array, np.repeat(array[-1:], exact - rows, axis=0)])
            if array.shape[:1] == (rows,)
            else array
            for name, array in feeds.items()
        }
        outputs = self._session.run(self._names, full)
        return [output[:rows] if np.shape(output)[:1] == (exact,) else output for output in outputs]

    def _without(self, rows: Sequence[Row], refused: BadRows) -> list[Answer]:
        """The sound rows' answers, and the refusals at their places."""
        faults = {i: BadInput(told) for i, told in refused.faults.items() if 0 <= i < len(rows)}
        if not faults:
            raise refused
        sound = [row for i, row in enumerate(rows) if i not in faults]
        answers = iter(self.infer(sound) if sound else ())
        name = self.card.capability
        return [
            Answer(error=failure_of(faults[i], name)) if i in faults else next(answers)
            for i in range(len(rows))
        ]

    def _load(self) -> None:
        # Imported here: the router and the aggregator import workers' cards but run no model.
        import onnxruntime as ort

        options = self._options(ort)

        def make(names: list[str]) -> Any:
            with warnings.catch_warnings():
                # It warns of a provider that it then leaves out; `choose` says so better.
                warnings.simplefilter("ignore", UserWarning)
                given = [(name, self._tuned(name)) for name in names]
                return ort.InferenceSession(str(self._path), options, providers=given)

        try:
            self._session, self.provider = providers.choose(
                make, ort.get_available_providers(), self.card.capability, self._wanted
            )
        except LoadError as error:
            raise LoadError(f"cannot load {self._path.name}: {error}") from error
        log.info("%s: %s computes %s", self.card.capability, self.provider, self._path.name)
        self._names = [output.name for output in self._session.get_outputs()]
        inputs = [node.name for node in self._session.get_inputs()]
        if unknown := sorted(set(self._sources) - set(inputs)):
            raise LoadError(
                f"{self.card.capability}: `sources` names {', '.join(unknown)}, and the inputs of "
                f"{self._path.name} are {', '.join(inputs)}"
            )
        if self._pre is None:
            self._pre = self._ready_made = TensorPre(
                [self._feed(node) for node in self._session.get_inputs()]
            )
        self._warm_up()

    def _tuned(self, provider: str) -> dict[str, str]:
        """The options of a provider."""
        if provider in providers.ON_GPU:
            return {"device_id": str(self._device)}
        return {"num_of_threads": str(self._threads[0])} if provider == providers.OPENVINO else {}

    def _options(self, ort: Any) -> Any:
        options = ort.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = self._threads
        # Threads that spin while they wait took twice the CPU of a run, from the other models too.
        options.add_session_config_entry("session.intra_op.allow_spinning", "1" if self._spinning else "0")
        # It keeps a plan for each shape ever seen: with 80 of them 110 MB instead of 69, and no faster.
        options.enable_mem_pattern = False
        options.log_severity_level = 3
        level = _LEVELS.get(self._optimisation)
        if level is None:
            raise LoadError(f"optimisation is one of {', '.join(_LEVELS)}; got {self._optimisation!r}")
        options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, level)
        return options

    def _feed(self, node: Any) -> Feed:
        dtype = _DTYPES.get(node.type)
        if dtype is None:
            raise LoadError(
                f"{self.card.capability}: input {node.name!r} is {node.type}; give a `pre` of your own"
            )
        shape = tuple(size if isinstance(size, int) and size > 0 else None for size in node.shape[1:])
        return Feed(node.name, self._sources.get(node.name, node.name), shape, dtype)

    def _warm_up(self) -> None:
        nodes = self._session.get_inputs()
        batch = nodes[0].shape[0] if nodes and nodes[0].shape else None
        if isinstance(batch, int) and batch != self.card.max_batch:
            raise LoadError(
                f"{self.card.capability}: {self._path.name} takes exactly {batch} rows a run, the card has "
                f"max_batch {self.card.max_batch}; set that to {batch} or export with a free batch axis"
            )
        self._exact = batch if isinstance(batch, int) else None
        if self._warm_rows:
            self.infer(self._warm_rows)
        elif self._ready_made and all(isinstance(size, int) for node in nodes for size in node.shape[1:]):
            for rows in sorted({self._exact or 1, self.card.max_batch}):
                feeds = {node.name: np.zeros((rows, *node.shape[1:]), _DTYPES[node.type]) for node in nodes}
                outputs = self._session.run(self._names, feeds)
                if isinstance(self._post, ClassPost):
                    self._read(outputs, [Row({}, {})] * rows)

    def _read(self, outputs: list[Array], rows: Sequence[Row]) -> None:
        """Raises LoadError where outputs and labels do not go together."""
        try:
            self._post(dict(zip(self._names, outputs, strict=True)), rows)
        except BadOutput as error:
            raise LoadError(f"{self.card.capability}: {self._path.name}: {error}") from error


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _are_texts(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(each, str) for each in value)


def _are_names(value: object) -> bool:
    return isinstance(value, Mapping) and all(map(_is_text, (*value, *value.values())))


def _are_labels(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(each, str | int) for each in value)


_OPTIONS: dict[str, tuple[Callable[[object], bool], str]] = {
    "path": (lambda value: isinstance(value, str | Path), "a file"),
    "sources": (_are_names, "an object of texts: the model's input to the capability's"),
    "intra_threads": (_is_count, "a whole number"),
    "inter_threads": (_is_count, "a whole number"),
    "device": (_is_count, "a whole number"),
    "spinning": (_is_flag, "true or false"),
    "softmax": (_is_flag, "true or false"),
    "scores": (_is_flag, "true or false"),
    "providers": (_are_texts, "a list of texts"),
    "optimisation": (_is_text, "a text"),
    "labels": (_are_labels, "a list, the name of each class"),
}


def build(card: Card, options: Mapping[str, Any]) -> OnnxBackend:
    """Options: `path`, and as wanted `sources`, `intra_threads`, `inter_threads`, `providers`, `device`,
    `spinning`, `optimisation`, and for classifiers `labels`, `softmax`, `scores`."""
    if unknown := sorted(set(options) - set(_OPTIONS)) or "path" not in options:
        known = sorted(set(_OPTIONS) - {"path"})
        raise LoadError(f"{card.capability}: an onnx backend takes path and {known}; got {unknown}")
    for name, value in options.items():
        fits, wanted = _OPTIONS[name]
        if not fits(value):
            raise LoadError(f"{card.capability}: the onnx backend's option {name} must be {wanted}")
    shape = {key: options[key] for key in ("labels", "softmax", "scores") if key in options}
    rest = {key: value for key, value in options.items() if key not in shape}
    return OnnxBackend(card, post=ClassPost(**shape) if shape else None, **rest)
