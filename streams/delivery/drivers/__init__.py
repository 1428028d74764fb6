"""Adapters of Kafka clients to the driver Protocols. Nothing outside this folder knows a client."""
