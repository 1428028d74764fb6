"""Trains the models of the library: `python -m training.NAME` from the repository root."""
