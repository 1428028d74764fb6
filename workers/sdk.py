"""What one needs to write a capability, in one place."""

from workers.backends import Answer, Backend, Row
from workers.backends.function import capability
from workers.errors import BadInput, CapabilityError

__all__ = ["Answer", "Backend", "BadInput", "CapabilityError", "Row", "capability"]
