"""The agents, and what every role needs on the stream."""
