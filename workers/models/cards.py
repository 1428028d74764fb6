"""Model folders: `card.json` beside a model, and the calibration written into it.

Under `calibration` a card holds the statement (`schemas.cards.Calibration`) and, beside it, `maps` (what is
applied, in order), `fitted_on` (where the outcomes came from), `since_ms` (confidences of before then were
made by the previous maps) and `previous` (the calibration that this one replaced, one deep).
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from numpy.typing import ArrayLike

from schemas.cards import Calibration
from workers.errors import LoadError
from workers.models.calibration import FOLDS, Figures, Fit, choose
from workers.models.maps import Calibrator

CARD = "card.json"


def card_path(place: str | Path) -> Path:
    """The card of a model folder, or `place` itself where it names a file."""
    path = Path(place)
    return path / CARD if path.is_dir() else path


def read_card(place: str | Path) -> dict[str, Any]:
    """The card of a file or model folder.

    Raises:
        LoadError: it is not there, or no card.
    """
    path = card_path(place)
    try:
        card = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise LoadError(f"card {path} cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        why = "nested too deep" if isinstance(error, RecursionError) else error
        raise LoadError(f"card {path} is no JSON: {why}") from error
    if not isinstance(card, dict):
        raise LoadError(f"card {path} is no JSON object; give the card.json of a model folder")
    return card


def write_card(place: str | Path, card: Mapping[str, Any]) -> None:
    """Put `card` in the place of the one there, at once: a reader sees the old one or the new one.

    Raises:
        LoadError: it cannot be written; the old one is as it was.
    """
    path = card_path(place).resolve()
    text = json.dumps(card, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    try:
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            Path(name).chmod(mode)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise LoadError(f"card {path} cannot be written: {error.strerror or error}") from error


def calibrator_of(card: Mapping[str, Any]) -> Calibrator:
    """What a card's calibration applies; nothing where it has none.

    Raises:
        LoadError: maps that are unknown or not monotone.
    """
    try:
        return Calibrator.from_card(_calibration_of(card).get("maps") or ())
    except (ValueError, AttributeError, TypeError) as error:
        raise LoadError(f"card of {card.get('name', 'a model')}: calibration: {error}") from error


def statement_of(card: Mapping[str, Any]) -> Calibration | None:
    """What a card says of its confidence; None where nothing was measured.

    Raises:
        LoadError: a statement with a key missing or out of its bounds.
    """
    found = _calibration_of(card)
    if "ece" not in found:
        return None
    try:
        return msgspec.convert(found, Calibration)
    except msgspec.ValidationError as error:
        raise LoadError(f"card of {card.get('name', 'a model')}: calibration: {error}") from error


def _calibration_of(card: Mapping[str, Any]) -> Mapping[str, Any]:
    found = card.get("calibration") or {}
    if not isinstance(found, Mapping):
        name = card.get("name", "a model")
        raise LoadError(f"card of {name}: calibration: it is no JSON object; register or calibrate it anew")
    return found


def register(
    place: str | Path,
    confidences: ArrayLike,
    outcomes: ArrayLike,
    *,
    threshold: float,
    fitted_on: str,
    folds: int = FOLDS,
    method: str | None = None,
) -> Calibration:
    """Fit on a model's held-out raw confidences and outcomes, write the calibration into its card, return it.

    `method` (`temperature`, `isotonic`, `none`) ends the choice between the first two. Everything else in the
    card stays; what calibration was there is replaced.

    Raises:
        LoadError: the card cannot be read or written.
        ValueError: confidences and outcomes that do not belong together.
    """
    card = read_card(place)
    fit = choose(confidences, outcomes, threshold, folds=folds, method=method, optional=False)
    maps = Calibrator(() if fit.map is None else (fit.map,))
    found = written(fit.method, fit.after, threshold, fit.samples, maps) | {"fitted_on": fitted_on}
    write_card(place, {**card, "calibration": found})
    return msgspec.convert(found, Calibration)


def recalibrated(
    card: Mapping[str, Any], fit: Fit, threshold: float, *, fitted_on: str, now: int
) -> dict[str, Any]:
    """`card` with `fit` applied after its present calibration, which it keeps as `previous`.

    Answers that were refused got no feedback, so that of the coverage only the change is known: the card's
    own coverage is scaled by it.
    """
    old = dict(_calibration_of(card))
    old.pop("previous", None)
    known = statement_of(card)
    coverage = fit.after.coverage
    if known is not None and known.threshold == threshold and fit.before.coverage:
        coverage = min(1.0, known.coverage * fit.after.coverage / fit.before.coverage)
    maps = calibrator_of(card)
    maps = maps if fit.map is None else maps.then(fit.map)
    stated = Figures(fit.after.ece, coverage, fit.after.accuracy)
    found = written(maps.method, stated, threshold, fit.samples, maps)
    return {**card, "calibration": found | {"fitted_on": fitted_on, "since_ms": now, "previous": old or None}}


def written(method: str, stated: Figures, threshold: float, samples: int, maps: Calibrator) -> dict[str, Any]:
    """The statement and the maps, as a card holds them."""
    rounded = {name: round(value, 4) for name, value in stated._asdict().items()}
    return {
        "method": method,
        **rounded,
        "threshold": threshold,
        "samples": samples,
        "maps": maps.to_card(),
    }
