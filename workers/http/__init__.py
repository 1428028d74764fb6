"""Capabilities over HTTP: requests to rows, partials to responses, descriptions for people. Pure."""
