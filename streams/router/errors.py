"""Errors of the router's package."""

from __future__ import annotations


class PredictorError(ValueError):
    """A predictor's file that cannot be used; the message says which and why."""


class DecomposerError(ValueError):
    """A module of decomposers that cannot be used; the message says which and why."""
