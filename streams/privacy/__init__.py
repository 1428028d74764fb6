"""Privacy: what may leave for the cloud, and the only key that opens its topics."""
