"""Edgeway over HTTP: requests in, their answers and events out; see docs/gateway.md."""
