"""Specifications as SVG and PNG, by vl-convert (V8 and resvg in a wheel): no browser, no network."""

from __future__ import annotations

import logging
import re
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

from schemas.limits import MAX_RECORD_BYTES
from workers.errors import BadInput

log = logging.getLogger(__name__)

# What is no character of XML: over one of these vl-convert ends the whole process. The two that end a line
# break Vega's expressions.
_UNDRAWABLE = re.compile("[^\t\n\r\x20-\u2027\u202a-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

MOST_BYTES = MAX_RECORD_BYTES * 3 // 5
"""Of a specification and a picture together: a picture grows by a third where it is answered in JSON."""


def can_render() -> bool:
    """Whether vl-convert is installed: `edgeway[charts]`."""
    return find_spec("vl_convert") is not None


def warm_up() -> None:
    """The first picture takes half a second, which no request is to wait for."""
    if not can_render():
        log.warning("finance/chart gives specifications alone: pictures need edgeway[charts]")
        return
    svg({"data": {"values": [{"a": 1}]}, "mark": "bar", "encoding": {"x": {"field": "a"}}})
    if not has_chinese_font():
        log.warning("no font here has Chinese letters, which charts in PNG need: install fonts-noto-cjk")


def svg(spec: dict[str, Any]) -> str:
    """Its letters stay letters: whoever shows it needs the font. What cannot be drawn is U+FFFD."""
    import vl_convert

    return str(vl_convert.vegalite_to_svg(_drawable(spec), vl_version=_version(), allowed_base_urls=[]))


def png(spec: dict[str, Any]) -> bytes:
    import vl_convert

    drawable = _drawable(spec)
    return bytes(vl_convert.vegalite_to_png(drawable, vl_version=_version(), scale=1.0, allowed_base_urls=[]))


def _drawable(part: Any) -> Any:
    if isinstance(part, str):
        return _UNDRAWABLE.sub("\ufffd", part)
    if isinstance(part, dict):
        return {key: _drawable(value) for key, value in part.items()}
    return [_drawable(each) for each in part] if isinstance(part, list) else part


@lru_cache(maxsize=1)
def has_chinese_font() -> bool:
    """Whether two Chinese letters look different from each other when drawn."""
    import vl_convert

    drawn = (
        '<svg xmlns="http://www.w3.org/2000/svg" width="24" height="24">'
        '<text y="20" font-family="sans-serif">{}</text></svg>'
    )
    one, other = (vl_convert.svg_to_png(drawn.format(letter)) for letter in "收元")
    # Without such a font both are the same box.
    return bool(one != other)


@lru_cache(maxsize=1)
def _version() -> str:
    import vl_convert

    return max(
        (version for version in vl_convert.get_vegalite_versions() if version.startswith("5.")),
        key=lambda version: int(version.partition(".")[2]),
    )


def bounded(size: int) -> int:
    """`size`, in bytes.

    Raises:
        BadInput: it is more than MOST_BYTES.
    """
    if size > MOST_BYTES:
        raise BadInput(f"the chart would have {size} bytes, and {MOST_BYTES} fit; show less, or smaller")
    return size
