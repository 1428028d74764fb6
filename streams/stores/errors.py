"""Errors of the stores."""

from __future__ import annotations


class StoreError(Exception):
    """Base of this package's errors."""


class StoreUnavailable(StoreError):
    """The store did not answer in time, or not at all. Whether it did what was asked is unknown."""
