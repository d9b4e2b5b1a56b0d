"""The demo's workload: orders, and what is submitted for each."""

from collections.abc import Iterator

from holdfast.gateway.tasks.shapes import NewTask

_CITIES = ("Lisbon", "Nairobi", "Osaka", "Quito", "Tallinn", "Wellington")
_STUCK_MAX = 7  # shipments that use up their retries
_TWICE_EVERY = 25  # orders whose customer clicks twice
_BATCH_ORDERS = 200


class Workload:
    """So many tasks of so many orders; the same for the same number."""

    def __init__(self, tasks: int) -> None:
        self.tasks = tasks
        self.orders = -(-tasks // 3)
        stuck = min(_STUCK_MAX, self.orders // 10)
        step = max(1, self.orders // (stuck + 1))
        self._stuck = frozenset(step * (n + 1) for n in range(stuck))

    @property
    def stuck(self) -> int:
        """How many tasks come to an incident."""
        return sum(1 for order in self._stuck if "ship" in self._steps(order))

    @property
    def duplicates(self) -> int:
        """How many submissions are there already when they come."""
        return self.orders // _TWICE_EVERY

    def references(self) -> set[str]:
        """The name of every effect that there must be in the end."""
        return {
            f"{step}-{order}" for order in range(1, self.orders + 1) for step in self._steps(order)
        }

    def batches(self) -> Iterator[list[NewTask]]:
        """What is submitted together: all tasks of some orders, some charges twice."""
        for start in range(1, self.orders + 1, _BATCH_ORDERS):
            orders = range(start, min(start + _BATCH_ORDERS, self.orders + 1))
            yield [task for order in orders for task in self._tasks_of(order)]

    def _steps(self, order: int) -> tuple[str, ...]:
        """The last order has only as many steps as are left."""
        left = self.tasks - (order - 1) * 3
        return ("charge", "invoice", "ship")[:left]

    def _tasks_of(self, order: int) -> Iterator[NewTask]:
        from holdfast.cli.demo import tasks

        cents = 990 + order * 7919 % 20_000
        city = "Atlantis" if order in self._stuck else _CITIES[order % len(_CITIES)]
        bound = {
            "charge": tasks.charge.bind(order, cents),
            "invoice": tasks.invoice.bind(order, cents),
            "ship": tasks.ship.bind(order, city),
        }
        for step in self._steps(order):
            # Charging twice would be the worst: that step has a key. The others do without.
            yield bound[step].new_task(f"charge-{order}" if step == "charge" else None)
        if order % _TWICE_EVERY == 0:
            yield bound["charge"].new_task(f"charge-{order}")
