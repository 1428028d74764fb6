"""Modules and files of the user's that the rules file names: imported once, at the start."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

from streams.strangers import RAISED


class ModuleWrong(ValueError):
    """It is not there, or fails to load; the message says which and why."""


def load_module(name: str, key: str) -> ModuleType:
    """The module `name`, or the file where it ends in .py, which the rules name under `key`. A file is read
    anew at each call.

    Raises:
        ModuleWrong: as it says.
    """
    try:
        return _from_file(Path(name), key) if name.endswith(".py") else _from_name(name, key)
    except ModuleWrong:
        raise
    except KeyboardInterrupt:
        raise
    except RAISED as error:
        raise ModuleWrong(f"{key}: {name} fails to load: {type(error).__name__}: {error}") from error


def marked(
    modules: Iterable[str],
    key: str,
    names_of: Callable[[Any], Iterable[str]],
    mark: str,
    doubled: Callable[[str], str],
) -> dict[str, Any]:
    """The functions of `modules` by the names that each was marked with, as `names_of` reads them. `mark` is
    how that is written, `doubled` what is wrong where two functions have one name.

    Raises:
        ModuleWrong: a module is not there, fails to load or marks nothing, or two functions have one name.
    """
    found: dict[str, Any] = {}
    for name in modules:
        module = load_module(name, key)
        functions = {id(value): value for value in vars(module).values() if names_of(value)}
        if not functions:
            raise ModuleWrong(f"{key}: {name} marks no function; write {mark} above one")
        for function in functions.values():
            for own in names_of(function):
                if found.setdefault(own, function) is not function:
                    raise ModuleWrong(f"{key}: {doubled(own)}")
    return found


def _from_name(name: str, key: str) -> ModuleType:
    here = str(Path.cwd())
    if here not in sys.path and "" not in sys.path:
        # A console script has no working directory on its path, and the module usually lies there.
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise ModuleWrong(
            f"{key}: the module {error.name!r} that {name!r} needs is not found;"
            " give a module on the path, or a file ending in .py"
        ) from error


def _from_file(path: Path, key: str) -> ModuleType:
    path = path.resolve()
    if not path.is_file():
        raise ModuleWrong(f"{key}: {path} is not found; it stands beside the rules file")
    spec = importlib.util.spec_from_file_location(f"edgeway_{key}_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ModuleWrong(f"{key}: {path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    spec.loader.exec_module(module)
    return module
