"""The object stores of a process."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from edgeway.errors import UsageError
from edgeway.roles.objects import opened, with_objects
from streams.settings import Settings, SettingsError, resolve


async def test_up_takes_a_folder_that_goes_with_it() -> None:
    async with contextlib.AsyncExitStack() as stack:
        settings = with_objects(stack, Settings())
        assert settings.objects is not None
        folder = Path(settings.objects.removeprefix("file://"))
        assert folder.is_dir()
        assert opened(settings).local is not None
    assert not folder.exists()


async def test_up_keeps_objects_below_its_data(tmp_path: Path) -> None:
    async with contextlib.AsyncExitStack() as stack:
        settings = with_objects(stack, Settings(data=tmp_path / "data"))
    assert settings.objects == (tmp_path / "data" / "objects").as_uri()
    assert (tmp_path / "data" / "objects").is_dir()


async def test_what_is_given_stands() -> None:
    async with contextlib.AsyncExitStack() as stack:
        assert with_objects(stack, Settings(objects="s3://b/x")).objects == "s3://b/x"


def test_without_settings_there_is_no_store() -> None:
    assert tuple(opened(Settings())) == (None, None)


def test_a_store_that_cannot_be_opened_is_usage() -> None:
    with pytest.raises(UsageError, match="--objects"):
        opened(Settings(objects="nosuch://b/x"))


@pytest.mark.parametrize("value", ["s3://", "s3://b?x=1", "file:///a/../b"])
def test_urls_are_checked_with_the_settings(value: str) -> None:
    with pytest.raises(SettingsError, match="objects"):
        resolve({"objects": value}, {})


def test_a_folder_is_a_url(tmp_path: Path) -> None:
    assert resolve({"objects": str(tmp_path)}, {}).objects == tmp_path.as_uri()


def test_two_stores_in_one_place_are_refused() -> None:
    with pytest.raises(SettingsError, match="one lies in the other"):
        resolve({"objects": "s3://b/x", "cloud_objects": "s3://b/x/y"}, {})
