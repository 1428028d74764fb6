"""Results as documents for people: Markdown, or one HTML page that needs nothing else."""

from edgeway.report.render import Kind, document, render

__all__ = ["Kind", "document", "render"]
