"""The whole path, by the doors that a user has: Kafka topics, commands, HTTP."""
