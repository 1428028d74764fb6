"""Roles as processes on an embedded Kafka, load, faults, and what came of it."""
