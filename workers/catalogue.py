"""The capabilities of an app: a Python module or file with functions marked by `@capability`, or backends."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import ModuleType

from schemas.messages import Side
from workers.backends import Backend
from workers.backends.function import backends_of
from workers.backends.limits import WRONG, is_sound
from workers.errors import AppError, UnknownCapability

LIBRARY = "workers.library"
"""The app of the ready-made capabilities."""


def load_app(app: str) -> list[Backend]:
    """The backends of `app`, a module (`my_app.models`) or a file (`models.py`), in the order of their
    definition.

    Collected are functions marked by `@capability`, backends, and lists or tuples of backends, that the
    module names, and what its function `offers()` gives; `my_app.models:chat` and `models.py:chat` take what
    `chat` names alone.

    Raises:
        AppError: it is not there, fails to load, or offers nothing.
    """
    place, name = _split(app)
    module = _from_file(Path(place)) if place.endswith(".py") else _from_name(place)
    found: dict[int, Backend] = {}
    for value in _values(module) if name is None else [_named(module, app, name)]:
        for backend in _offered(value):
            found.setdefault(_identity(value, backend), backend)
    if not found:
        raise AppError(
            f"app {app!r} offers nothing; mark a function with @capability('local/NAME') or name a backend"
        )
    backends = list(found.values())
    _check_unique(app, backends)
    _check_limits(backends)
    return backends


def _values(module: ModuleType) -> list[object]:
    """What a module names, and what its function `offers` gives, if it has one."""
    offers = vars(module).get("offers")
    more = list(offers()) if callable(offers) and not backends_of(offers) else []
    return [*vars(module).values(), more]


def _split(app: str) -> tuple[str, str | None]:
    """The module or file of an app, and the name in it where one is given."""
    place, colon, name = app.rpartition(":")
    if not colon:
        return app, None
    if not (place and name.isidentifier()):
        raise AppError(f"app {app!r}: give MODULE, FILE.py, MODULE:NAME or FILE.py:NAME")
    return place, name


def _named(module: ModuleType, app: str, name: str) -> object:
    if name in vars(module):
        return vars(module)[name]
    offering = sorted(key for key, value in vars(module).items() if any(True for _ in _offered(value)))
    raise AppError(f"app {app!r}: there is no {name}; {', '.join(offering) or 'nothing'} can be served there")


Fill = Callable[[frozenset[tuple[Side, str]]], Iterable[Backend]]
"""Backends beside those of the apps, told what the apps offer."""


def _nothing(_: frozenset[tuple[Side, str]]) -> Iterable[Backend]:
    return ()


def backends_for(
    side: Side | None, apps: Iterable[str], names: Sequence[str] | None = None, fill: Fill = _nothing
) -> list[Backend]:
    """The backends that a worker of `side` serves (None: of both), those of `names` alone where given.

    A name is `nlp/intent`, or `local/nlp/intent`. `fill` adds what no app offers. What an app offers itself
    goes before the library's of the same name.

    Raises:
        AppError: an app that cannot be loaded, or two that offer the same.
        UnknownCapability: a name that no app offers on this side, or no capability at all; the message lists
        the known.
    """
    apps = tuple(apps)
    every = _offers(apps)
    every += fill(frozenset((backend.card.side, backend.card.capability) for backend in every))
    _check_unique(", ".join(apps), every)
    _check_limits(every)
    here = [backend for backend in every if side in (None, backend.card.side)]
    known = ", ".join(sorted(f"{b.card.side}/{b.card.capability}" for b in every)) or "none"
    if not here:
        where = f" on side {side}" if side else ""
        sources = f"app {', '.join(apps)}" if apps else "there is no app, and models"
        raise UnknownCapability(f"nothing to serve{where}: {sources} offer{'s' if apps else ''} {known}")
    if not names:
        return here
    chosen = [backend for backend in here if _is_named(backend, names)]
    missing = [name for name in names if not any(_is_named(backend, (name,)) for backend in here)]
    if missing:
        where = f" on side {side}" if side else ""
        raise UnknownCapability(f"unknown capability {', '.join(missing)}{where}; known are {known}")
    return chosen


def _offers(apps: Sequence[str]) -> list[Backend]:
    """What `apps` offer; of the library what none of the others does, so that a team's own goes before it."""
    own = [backend for app in apps if app != LIBRARY for backend in load_app(app)]
    taken = {(backend.card.side, backend.card.capability) for backend in own}
    ready = load_app(LIBRARY) if LIBRARY in apps else []
    return [backend for backend in ready if (backend.card.side, backend.card.capability) not in taken] + own


def _is_named(backend: Backend, names: Sequence[str]) -> bool:
    card = backend.card
    return card.capability in names or f"{card.side}/{card.capability}" in names


def _offered(value: object) -> Iterable[Backend]:
    if isinstance(value, list | tuple):
        return [item for item in value if isinstance(item, Backend) and not isinstance(item, type)]
    if isinstance(value, Backend) and not isinstance(value, type):
        return [value]
    return backends_of(value) if callable(value) else ()


def _identity(value: object, backend: Backend) -> int:
    """One function or backend under two names is offered once."""
    return hash((id(value), backend.card.side, backend.card.capability)) if callable(value) else id(backend)


def _check_unique(app: str, backends: Sequence[Backend]) -> None:
    seen: set[tuple[str, str]] = set()
    for backend in backends:
        key = (backend.card.side, backend.card.capability)
        if key in seen:
            raise AppError(f"app {app!r} offers {key[0]}/{key[1]} twice; keep one")
        seen.add(key)


def _check_limits(backends: Iterable[Backend]) -> None:
    for card in (backend.card for backend in backends):
        if not is_sound(card):
            raise AppError(f"{card.side}/{card.capability}: {WRONG}")


def _from_name(app: str) -> ModuleType:
    # A console script has no working directory on its path, and the app usually lies there.
    here = str(Path.cwd())
    if here not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(app)
    except ModuleNotFoundError as error:
        if error.name and (app == error.name or app.startswith(f"{error.name}.")):
            raise AppError(
                f"app {app!r} is not found; give a module on the path, or a file ending in .py"
            ) from error
        raise AppError(f"app {app!r} needs the module {error.name!r}, which is not installed") from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a panic of an extension in Rust is no Exception
        raise AppError(f"app {app!r} fails to load: {type(error).__name__}: {error}") from error


def _from_file(path: Path) -> ModuleType:
    path = path.resolve()
    if not path.is_file():
        raise AppError(f"app {path} is not found; give a module on the path, or a file ending in .py")
    name = f"edgeway_app_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise AppError(f"app {path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a panic of an extension in Rust is no Exception
        del sys.modules[name]
        raise AppError(f"app {path} fails to load: {type(error).__name__}: {error}") from error
    return module
