"""Images that nothing could read."""

from __future__ import annotations

from collections.abc import Iterator

from streams.privacy.finding import Detector, Finding
from streams.privacy.texts import UNREAD_IMAGE

NAME = "images"


class Images:
    """An image without a TextReader that reads it is a finding: it stays local."""

    name = NAME

    def find(self, text: str, /) -> Iterator[Finding]:
        if text == UNREAD_IMAGE:
            yield Finding("image", text, 1.0, NAME)


def detector() -> Detector:
    """The detector `images`."""
    return Images()
