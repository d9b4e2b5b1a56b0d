"""Pictures as PNG, for places that show no SVG."""

import re

PIXELS_MAX = 16_000_000
"""64 MB and some seconds while it is drawn; a larger picture is scaled down."""

_SIZE = re.compile(r'<svg [^>]*?width="([\d.]+)" height="([\d.]+)"')


def draw_png(svg: str, scale: float = 2.0) -> bytes:
    """A picture of `draw_svg` as PNG, with so many pixels for each of its own.

    The texts are drawn with the fonts of the machine; where it has none they are left out.
    """
    import resvg_py  # a megabyte of native code that only pictures need

    size = _SIZE.search(svg)
    if size:
        pixels = float(size[1]) * float(size[2]) * scale**2
        scale *= min(1.0, (PIXELS_MAX / max(pixels, 1.0)) ** 0.5)
    return bytes(resvg_py.svg_to_bytes(svg_string=svg, zoom=scale, background="#ffffff"))
