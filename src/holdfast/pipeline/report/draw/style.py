"""How the pictures look: colours that every eye tells apart, plain words, and no more ink."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from holdfast.pipeline.report.words import span_text

# Okabe and Ito's colours. What is good or usual is blue or green, what needs a look is vermilion.
BLUE, GREEN, ORANGE, VERMILION = "#0072B2", "#009E73", "#E69F00", "#D55E00"
INK, SOFT, LINE, PALE = "#222222", "#6B6B6B", "#DDDDDD", "#C9C9C9"

NOTHING = "nothing yet"
LINES_MIN = 6  # a page has room for so many at least
TITLE_POINTS, TEXT_POINTS, SMALL_POINTS = 15, 10, 9

_MARGIN = 0.14  # in inches
_TENTHS_BELOW = timedelta(seconds=4)  # an axis of time that is shorter has more ticks than seconds
_SPAN_TICKS_MS = (
    1, 10, 100, 1_000, 10_000, 60_000, 600_000, 3_600_000, 36_000_000, 86_400_000, 864_000_000,
    8_640_000_000,
)  # fmt: skip


def new_figure(width: float, height: float) -> Any:
    """An empty page, in inches, that needs no screen."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams.update(
        {
            "svg.fonttype": "none",  # text stays text: it can be searched, and the file is small
            "font.size": TEXT_POINTS,
            "text.color": INK,
            "axes.edgecolor": PALE,
            "axes.labelcolor": SOFT,
            "xtick.color": SOFT,
            "ytick.color": SOFT,
            "text.parse_math": False,  # users wrote the names: a dollar is a dollar
        }
    )
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    figure.set_layout_engine("constrained", w_pad=_MARGIN, h_pad=_MARGIN / 2)
    return figure


def head(part: Any, title: str, said: str) -> None:
    """The title, and under it what the picture says in a sentence."""
    from matplotlib.text import Annotation

    top = part.suptitle(
        f"{title}\n", x=0.015, ha="left", fontsize=TITLE_POINTS, fontweight="bold", color=INK
    )  # its second line is the sentence's room
    sentence = Annotation(
        said, (0, 0), xycoords=top, xytext=(0, 5), textcoords="offset points", va="bottom",
        fontsize=TEXT_POINTS, color=SOFT, annotation_clip=False,
    )  # fmt: skip
    sentence.set_in_layout(False)
    part.add_artist(sentence)


def nothing(part: Any, title: str) -> None:
    """The page of a report that has no rows."""
    head(part, title, "")
    axes = part.add_subplot()
    axes.axis("off")
    axes.text(0.5, 0.5, NOTHING, ha="center", va="center", fontsize=22, color=PALE)


def bare(axes: Any, *, grid: str) -> None:
    """Axes with faint lines in one direction and no frame."""
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.grid(axis=grid, color=LINE, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, labelsize=SMALL_POINTS)


def lines(axes: Any, count: int) -> None:
    """Room for so many lines from the top down; a few do not fill the page."""
    axes.set_ylim(max(count, LINES_MIN) - 0.4, -0.7)


def over_time(axes: Any, times: Sequence[datetime]) -> None:
    """An axis of time, in the reader's time zone."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    zone = times[0].astimezone().tzinfo
    locator = AutoDateLocator(minticks=4, maxticks=9, tz=zone)
    axes.xaxis.set_major_locator(locator)
    seconds = "%H:%M:%S.%f" if times[-1] - times[0] < _TENTHS_BELOW else "%H:%M:%S"
    clock, day = ["%H:%M", "%H:%M", seconds], ["%d %b %Y"] * 3
    formatter = ConciseDateFormatter(
        locator,
        tz=zone,
        formats=["%Y", "%b", "%d", *clock],
        zero_formats=["", "%Y", "%b", "%d %b", *clock[1:]],
        offset_formats=["", "%Y", "%b %Y", *day],
    )
    axes.xaxis.set_major_formatter(formatter)
    if times[0] < times[-1]:
        axes.set_xlim(times[0], times[-1])


def spans_axis(axes: Any, low_ms: float, high_ms: float) -> None:
    """A logarithmic axis of spans of time, with ticks that people say."""
    from matplotlib.ticker import FixedLocator, NullLocator

    low, high = max(low_ms, 1), max(high_ms, 10)
    axes.set_xscale("log")
    axes.set_xlim(low / 1.4, high * 1.4)
    ticks = [tick for tick in _SPAN_TICKS_MS if low / 1.4 <= tick <= high * 1.4]
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(lambda value, _: span_text(value))
