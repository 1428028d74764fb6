"""Processes that pay from one budget, killed at random; see run.py."""
