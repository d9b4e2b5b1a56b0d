"""The orders of the demo's process: what each begins with, and how it must end."""

import msgspec

from holdfast.cli.demo.order_tasks import DOWN, EMPTY

_SHARE = 20  # one order for so many tasks of the first act
_ORDERS_MIN = 20
_EMPTY_EVERY = 10  # cards without cover
_STUCK_MAX = 7  # orders at the bank that is down


class Order(msgspec.Struct, frozen=True):
    """One order, as the process gets it."""

    order: int
    total: float
    card: str


class Orders:
    """So many orders; the same for the same number of tasks."""

    def __init__(self, tasks: int) -> None:
        self.count = max(_ORDERS_MIN, tasks // _SHARE)
        self.all = [self._order(number) for number in range(1, self.count + 1)]

    @property
    def stuck(self) -> int:
        """How many come to an incident."""
        return sum(1 for order in self.all if order.card == DOWN)

    @property
    def charged(self) -> list[Order]:
        """Those whose card has cover: they are to be paid."""
        return [order for order in self.all if order.card != EMPTY]

    def effects(self) -> set[str]:
        """The name of every effect that there must be in the end."""
        return {f"{what}-{each.order}" for each in self.charged for what in ("charge", "invoice")}

    def _order(self, number: int) -> Order:
        step = max(2, self.count // (_STUCK_MAX + 1))
        stuck = number % step == 1 and number // step < _STUCK_MAX
        card = DOWN if stuck else EMPTY if number % _EMPTY_EVERY == 0 else f"card {number}"
        return Order(number, 10 + number * 37 % 200, card)
