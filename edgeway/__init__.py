"""Edgeway: hybrid inference over Kafka."""
