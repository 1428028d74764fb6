"""Benchmarks: what Edgeway costs beside bare loops on the same broker."""
