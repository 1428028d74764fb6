"""The demonstration: real questions through a real Kafka, every role, and a table of what came back."""
