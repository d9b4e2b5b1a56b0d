"""Pictures of processes: laid out by themselves or as somebody drew them, as SVG and PNG."""

from holdfast.model.drawing.layout import drawing_of, layout
from holdfast.model.drawing.png import draw_png
from holdfast.model.drawing.svg import draw_svg

__all__ = ["draw_png", "draw_svg", "drawing_of", "layout"]
