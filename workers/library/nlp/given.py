"""The text of a request: `text`, or the request's own words where that is not given."""

from __future__ import annotations

from workers.errors import BadInput

MOST_CHARACTERS = 100_000


def text_of(text: str, query: str = "", most: int = MOST_CHARACTERS) -> str:
    """`text`, else `query`.

    Raises:
        BadInput: both blank, or more than `most` characters.
    """
    given = text if text.strip() else query
    if not given.strip():
        raise BadInput("there is no text; give it as inputs.text")
    if len(given) > most:
        raise BadInput(f"the text has {len(given)} characters; at most {most} are read: send it in parts")
    return given
