"""The forecasting network: shares of free-flow speed now and at the neighbours in, quantiles to come out.

A network with two hidden layers gives, for 5, 15, 30 and 60 minutes ahead, the 10, 50 and 90 % quantiles of
the change of the share (quantile regression, Koenker and Bassett 1978); the outer two are then moved so that
on days held out they hold 80 % (conformalised quantile regression, Romano et al. 2019). It is trained by
`training/traffic.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from workers.errors import LoadError

Floats = NDArray[Any]  # float32 throughout
FOLDER = Path(__file__).parent / "models" / "road-speed" / "1"
STEP_MIN = 5
HORIZONS_MIN = (5, 15, 30, 60)
QUANTILES = (0.1, 0.5, 0.9)
LAGS = (0, 1, 2, 3, 5, 8, 11)
"""Steps back that are looked at, of the segment itself."""
DOWN_LAGS = (0, 1, 2, 3)
UP_LAGS = (0, 2)
PAST = max(LAGS) + 1
MOST = 1.3
"""No share of free-flow speed is believed to be above."""
INPUTS = len(LAGS) + len(DOWN_LAGS) + len(UP_LAGS) + 1 + len(HORIZONS_MIN) + 3


class Model(NamedTuple):
    """Weights [in, out] and biases of three layers, scaling of the inputs, and the move of the quantiles by
    horizon."""

    weights: tuple[Floats, ...]
    biases: tuple[Floats, ...]
    mean: Floats
    scale: Floats
    moved: Floats

    def __call__(self, x: Floats) -> Floats:
        """[rows, horizons, quantiles] as shares of free-flow speed, from [rows, INPUTS]."""
        raw = forward(self.weights, self.biases, (x - self.mean) / self.scale)[-1]
        found = raw.reshape(len(x), len(HORIZONS_MIN), len(QUANTILES)) + x[:, :1, None]
        found = found + np.stack([-self.moved, 0 * self.moved, self.moved], axis=1)
        # Quantiles are fitted apart and may cross.
        shares: Floats = np.clip(np.sort(found, axis=2), 0.0, MOST)
        return shares


def forward(weights: Sequence[Floats], biases: Sequence[Floats], x: Floats) -> list[Floats]:
    """The values of every layer, the inputs first; ReLU between."""
    layers = [x]
    for number, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
        x = x @ weight + bias
        if number < len(weights) - 1:
            x = np.maximum(x, 0)
        layers.append(x)
    return layers


def features(
    own: Floats, down: Floats | None, up: Floats | None, profile: Floats | None, missing: Floats
) -> Floats:
    """[rows, INPUTS] from shares of free-flow speed, the latest last.

    `own` [rows, PAST]; `down` (the slowest of the next segments) and `up` (the mean of those before), of the
    same shape; `profile` [rows, 1 + horizons], what is usual now and then; `missing` [rows], the share of own
    values that were filled in. What is unknown is None, and taken as equal to the segment's own.
    """
    now = own[:, -1:]
    flat = np.repeat(now, 1 + len(HORIZONS_MIN), axis=1)
    parts = [own[:, [-1 - lag for lag in LAGS]]]
    parts.append((own if down is None else down)[:, [-1 - lag for lag in DOWN_LAGS]])
    parts.append((own if up is None else up)[:, [-1 - lag for lag in UP_LAGS]])
    parts.append(flat if profile is None else profile)
    flags = [missing, np.full(len(own), down is not None), np.full(len(own), profile is not None)]
    return np.hstack([*parts, np.stack(flags, axis=1)]).astype(np.float32)


def save(model: Model, path: Path) -> None:
    names = {f"weight{n}": value for n, value in enumerate(model.weights)}
    names |= {f"bias{n}": value for n, value in enumerate(model.biases)}
    names |= {"mean": model.mean, "scale": model.scale, "moved": model.moved}
    np.savez(path, **names)  # type: ignore[arg-type]  # its flag is no array


@lru_cache(maxsize=1)
def model() -> Model:
    """The model of this package.

    Raises:
        LoadError: its file is missing or damaged.
    """
    path = FOLDER / "model.npz"
    try:
        with np.load(path, allow_pickle=False) as file:
            held: Mapping[str, Floats] = {name: file[name] for name in file.files}
        layers = range(3)
        return Model(
            tuple(held[f"weight{n}"] for n in layers),
            tuple(held[f"bias{n}"] for n in layers),
            held["mean"],
            held["scale"],
            held["moved"],
        )
    except (OSError, ValueError, KeyError) as error:
        raise LoadError(f"the forecasting model {path.name} cannot be read: {error}") from error
