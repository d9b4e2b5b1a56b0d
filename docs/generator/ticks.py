"""docs/pictures/ticks.svg: who publishes at each tick, and the order that follows from cuts."""

from hashlib import sha256
from itertools import pairwise
from typing import NamedTuple

from holdfast.sequence import ticks
from holdfast.sequence.api import LogKey
from holdfast.sequence.cuts import START, follow, make_cut
from holdfast.sequence.order import ordered
from holdfast.sequence.ring import Ring
from holdfast.sequence.ticks import TickPace

_KEYS = sorted((f"{n:064x}" for n in range(3)), key=lambda k: sha256(bytes.fromhex(k)).digest())
_MEMBERS = dict(zip("ABC", _KEYS, strict=True))
_TICKS = 13
_DIES = 4.5  # A, after it has published at the fourth tick
_LEFT, _TOP, _TICK, _LANE = 130, 78, 66, 52
_LOGS = (LogKey("records", 1), LogKey("records", 2))
_MARKS = ((2, 1), (4, 1), (5, 3))  # of the two logs, at three cuts


class _Event(NamedTuple):
    tick: int
    member: str


def picture() -> str:
    """Three members over a dozen ticks; the first one dies, and the next goes on."""
    published = _play()
    parts = [_HEAD]
    for tick in range(1, _TICKS + 1):
        x = _x(tick)
        parts.append(f'<path d="M{x} {_TOP - 22} V{_TOP + 3 * _LANE - 12}" class="grid"/>')
        parts.append(_text(x, _TOP - 30, f"t{tick}", "label"))
    for number, member in enumerate(_MEMBERS):
        y = _TOP + number * _LANE
        end = _x(_DIES) if member == "A" else _x(_TICKS + 0.4)
        parts.append(_text(_LEFT - 70, y + 5, f"member {member}", "name", "start"))
        parts.append(f'<path d="M{_LEFT + 20} {y} H{end}" class="life"/>')
    parts.append(_text(_x(_DIES), _TOP + 5, "✕", "dead"))
    for number, event in enumerate(published, 1):
        y = _TOP + list(_MEMBERS).index(event.member) * _LANE
        parts.append(f'<circle cx="{_x(event.tick)}" cy="{y}" r="15" class="cut"/>')
        parts.append(_text(_x(event.tick), y + 5, str(number), "number"))
    gap = next(b for a, b in pairwise(published) if a.member != b.member)
    says = f"{gap.member} waits one tick, and {TickPace().delay_ticks} for its place in the ring"
    parts.append(_text((_x(_DIES) + _x(gap.tick)) // 2, _TOP + _LANE - 14, says, "label"))
    parts += _derived(_TOP + 3 * _LANE + 46)
    return "\n".join((*parts, "</svg>")) + "\n"


def _play() -> list[_Event]:
    """A tick is a second; everybody who lives sees a cut at once."""
    ring, pace = Ring(_MEMBERS), TickPace(tick_seconds=1.0)
    turns = {each: ticks.read(ticks.begin(0.0), 0.0, 0, None, None) for each in _MEMBERS}
    published: list[_Event] = []
    for now in range(1, _TICKS + 1):
        if now > _DIES:
            turns.pop("A", None)
        for member, turn in turns.items():
            due = ticks.due(turn, ring, member, pace)
            if due is not None and due <= now:
                published.append(_Event(now, member))
                nonce = f"{member}{now}"
                turns[member] = ticks.written(ticks.tried(turn, now, due, nonce), now, member, pace)
                for other in turns.keys() - {member}:
                    turns[other] = ticks.seen(turns[other], now, len(published), member, nonce)
                break
    return published


def _derived(y: int) -> list[str]:
    """Three cuts of two logs, and the one order that follows from them."""
    title = "what three cuts say of two logs, and the order of entries that follows"
    parts = [_text(_LEFT - 70, y, title, "name", "start")]
    at, x = START, _LEFT - 70
    for marks in _MARKS:
        cut = make_cut(at, dict(zip(_LOGS, marks, strict=True)), "A", "", 0)
        grown = ", ".join(f"log {key.partition} +{count}" for key, count in cut.grown.items())
        parts.append(_text(x, y + 30, f"cut {cut.number}: {grown}", "label", "start"))
        for span in ordered(at, cut):
            for past in range(span.entries):
                kind = f"log{span.key.partition}"
                parts.append(
                    f'<rect x="{x}" y="{y + 42}" width="58" height="44" rx="5" class="{kind}"/>'
                )
                parts.append(_text(x + 29, y + 62, str(span.id + past), "number"))
                where = f"{span.key.partition}/{span.offset + past}"
                parts.append(_text(x + 29, y + 79, where, "place"))
                x += 62
        x += 24
        at = follow(at, cut)
    says = "above the sequence id, below partition/offset; inside a cut logs are sorted by key"
    parts.append(_text(_LEFT - 70, y + 112, says, "label", "start"))
    return parts


def _x(tick: float) -> int:
    return round(_LEFT + 20 + tick * _TICK)


def _text(x: float, y: float, text: str, kind: str, anchor: str = "middle") -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" class="{kind}">{text}</text>'


_HEAD = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1060 400" role="img"
 font-family="system-ui, sans-serif" font-size="14">
<title>Ticks: the last writer goes on, the others wait by their place in the ring</title>
<style>
 .grid { stroke: #d5dae1; stroke-dasharray: 3 4 } .life { stroke: #8a94a6; stroke-width: 2 }
 .cut { fill: #2f6fb0 } .number { fill: #fff; font-weight: 600 } .name { fill: #1f2733 }
 .label { fill: #5b6676; font-size: 13px } .dead { fill: #b3363e; font-size: 22px }
 .place { fill: #fff; font-size: 11px } .log1 { fill: #2f6fb0 } .log2 { fill: #3d8b5f }
</style>
<rect width="1060" height="400" fill="#fff"/>
<text x="60" y="24" class="name">A publishes a cut at every tick, and dies</text>"""
