"""The composition roots: each role built from its parts and run until it is told to stop."""

from edgeway.roles.run import run_aggregator, run_gateway, run_router, run_up, run_worker

__all__ = ["run_aggregator", "run_gateway", "run_router", "run_up", "run_worker"]
