"""Errors of the budget."""

from __future__ import annotations

from streams.stores.errors import StoreUnavailable


class LedgerMissing(StoreUnavailable):
    """The store answers, but its ledger is gone: nobody knows what was spent today, and nothing is paid."""
