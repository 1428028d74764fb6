"""The store of a repository, by its URL."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

from workers.errors import RepositoryError
from workers.models.local_store import LocalStore
from workers.models.stores import Store
from workers.models.url_store import UrlStore


def open_store(url: str) -> Store:
    """The store at a folder or URL.

    Raises:
        RepositoryError: nothing here reads such URLs.
    """
    scheme, mark, rest = url.partition("://")
    if not mark:
        return LocalStore(Path(url).expanduser())
    if scheme == "file":
        found = urlsplit(url)
        if found.netloc not in ("", "localhost"):
            raise RepositoryError(f"{url} names a host; write file:///folder, with three slashes")
        return LocalStore(Path(unquote(found.path)))
    if not rest.strip("/"):
        raise RepositoryError(f"{url} names no place; give for example {scheme}://bucket/prefix")
    return UrlStore(url)
