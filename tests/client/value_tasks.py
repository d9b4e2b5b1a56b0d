"""Tasks with values of many types, in a module that child processes import for themselves."""

import os
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from fractions import Fraction
from pathlib import PurePosixPath
from typing import Any, NamedTuple, TypedDict
from uuid import UUID

import attrs
import msgspec
from cryptography.fernet import Fernet
from pydantic import AnyUrl, BaseModel, ConfigDict, Field

from holdfast import BusinessError, Holdfast, ValueCodec, current_job


class Colour(StrEnum):
    RED = "red"


class Level(IntEnum):
    HIGH = 3


class Kind(Enum):
    PLAIN = "plain"


class Line(BaseModel):
    """A strict model: it takes a date from JSON's text, and from nothing else that is text."""

    model_config = ConfigDict(strict=True, frozen=True)

    article: str = Field(alias="articleName")
    price: Decimal
    due: date
    picture: bytes = b""


class Basket(BaseModel):
    lines: list[Line]
    owner: UUID
    site: AnyUrl
    tags: set[str] = set()
    colour: Colour = Colour.RED


@dataclass(frozen=True)
class Address:
    street: str
    since: date


@attrs.frozen
class Lot:
    number: int
    made: datetime


class Point(msgspec.Struct, frozen=True):
    x: Decimal
    y: float


class Pair(NamedTuple):
    left: int
    right: str


class Options(TypedDict):
    colour: Colour
    limit: int


@dataclass(frozen=True)
class Everything:
    """All of it, in one value."""

    basket: Basket
    address: Address
    lot: Lot
    point: Point
    colour: Colour
    level: Level
    kind: Kind
    day: date
    moment: datetime
    clock: time
    span: timedelta
    who: UUID
    price: Decimal
    tags: set[str]
    frozen: frozenset[int]
    two: tuple[int, Decimal]
    some: tuple[date, ...]
    raw: bytes
    pair: Pair
    options: Options
    path: PurePosixPath
    share: Fraction
    lines: list[Line]
    by_name: dict[str, Basket]
    by_number: dict[int, Address]
    shares: dict[str, list[Fraction]] = field(default_factory=dict)
    maybe: Basket | None = None
    nothing: Basket | None = None


LINE = Line(
    articleName="pear", price=Decimal("1.000000000000000000000000001"), due=date(2026, 3, 1)
)
BASKET = Basket(lines=[LINE], owner=UUID(int=7), site=AnyUrl("https://example.org/a"), tags={"x"})
ADDRESS = Address("High Street", date(2020, 2, 29))

EVERYTHING = Everything(
    basket=BASKET,
    address=ADDRESS,
    lot=Lot(4, datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)),
    point=Point(Decimal("0.1"), 0.1),
    colour=Colour.RED,
    level=Level.HIGH,
    kind=Kind.PLAIN,
    day=date(2026, 1, 2),
    moment=datetime(2026, 1, 2, 3, 4, tzinfo=UTC),
    clock=time(3, 4, 5),
    span=timedelta(days=1, seconds=2, microseconds=3),
    who=UUID(int=2**100),
    price=Decimal("1234567890.123456789012345678901234567890"),
    tags={"a", "b"},
    frozen=frozenset({1, 2}),
    two=(1, Decimal("9.90")),
    some=(date(2026, 1, 2), date(2026, 1, 3)),
    raw=b"\x00\xff",
    pair=Pair(1, "r"),
    options={"colour": Colour.RED, "limit": 5},
    path=PurePosixPath("/a/b"),
    share=Fraction(1, 3),
    lines=[LINE, LINE],
    by_name={"mine": BASKET},
    by_number={3: ADDRESS},
    shares={"all": [Fraction(2, 3)]},
    maybe=BASKET,
)


class OwnCodec(ValueCodec):
    """Sends paths and fractions, and encrypts everything but what is named `open_...`."""

    def __init__(self, key: str | None) -> None:
        self._box = None if key is None else Fernet(key)

    def encode(self, value: Any) -> Any:
        if isinstance(value, PurePosixPath | Fraction):
            return str(value)
        return super().encode(value)

    def decode(self, value: Any, kind: type[Any]) -> Any:
        return kind(value) if kind in (PurePosixPath, Fraction) else super().decode(value, kind)

    def seal(self, name: str, data: bytes) -> bytes | None:
        if self._box is None or name.startswith("open_"):
            return None
        return self._box.encrypt(data)

    def unseal(self, data: bytes) -> bytes:
        assert self._box is not None
        return self._box.decrypt(data)


def opened() -> Holdfast:
    """The app of this module: a folder, or a node elsewhere."""
    codec = OwnCodec(os.environ.get("VALUE_TASKS_KEY"))
    if url := os.environ.get("VALUE_TASKS_URL"):
        return Holdfast.connect(url, codec=codec)
    return Holdfast.open(os.environ["VALUE_TASKS_FOLDER"], workers=0, codec=codec)


app = opened()


@app.task(retries=0)
def one_by_one(
    basket: Basket,
    address: Address,
    lot: Lot,
    point: Point,
    colour: Colour,
    level: Level,
    kind: Kind,
    day: date,
    moment: datetime,
    clock: time,
    span: timedelta,
    who: UUID,
    price: Decimal,
    tags: set[str],
    frozen: frozenset[int],
    two: tuple[int, Decimal],
    some: tuple[date, ...],
    raw: bytes,
    pair: Pair,
    options: Options,
    path: PurePosixPath,
    share: Fraction,
    lines: list[Line],
    by_name: dict[str, Basket],
    by_number: dict[int, Address],
    shares: dict[str, list[Fraction]],
    maybe: Basket | None,
    nothing: Basket | None,
) -> Everything:
    return Everything(**locals())


@app.task(retries=0)
def nested(everything: Everything, listed: list[Everything]) -> dict[str, Everything]:
    assert everything == listed[0]
    return {"it": everything}


@app.task(retries=0)
async def awaited(basket: Basket) -> Basket | None:
    return basket


@app.task(retries=0)
def price(basket: Basket, secret: str, open_limit: int) -> dict[str, Any]:
    assert current_job().payload["secret"] == secret, "what it sees is plain, too"
    if secret == "no":
        raise BusinessError("REFUSED", "by request", reason=f"said {secret}", at=Fraction(1, 2))
    return {"total": basket.lines[0].price, "note": f"for {secret}", "share": Fraction(1, 2)}


@app.task(retries=0)
def ship(note: str, share: Fraction, total: Decimal) -> dict[str, Any]:
    return {"shipped": note.upper(), "double": share * 2, "exact": total}
