"""The low watermark of a group: the smallest among its live partitions, found without a walk."""

from heapq import heapify, heappop, heappush


class Watermarks:
    """The watermarks of live partitions; a partition that has none yet holds back all of them."""

    def __init__(self) -> None:
        self._live: dict[str, int | None] = {}
        self._heap: list[tuple[int, str]] = []  # with entries that are out of date
        self._unknown = 0

    def put(self, token: str, watermark: int | None) -> None:
        """A live partition stands here now."""
        former = self._live.get(token, -1)  # no watermark is below 0
        if former == watermark:
            return
        self._live[token] = watermark
        self._unknown += (watermark is None) - (former is None)
        if watermark is not None:
            heappush(self._heap, (watermark, token))

    def put_all(self, live: dict[str, int | None]) -> None:
        """These are all live partitions, and this is where they stand."""
        self._live = live
        self._heap = [(mark, token) for token, mark in live.items() if mark is not None]
        heapify(self._heap)
        self._unknown = len(live) - len(self._heap)

    def drop(self, token: str) -> None:
        """A partition is live no more."""
        if self._live.pop(token, -1) is None:
            self._unknown -= 1

    def lowest(self) -> int | None:
        """The smallest of all; None where there is none, or one is not known."""
        if self._unknown:
            return None
        while self._heap:
            watermark, token = self._heap[0]
            if self._live.get(token) == watermark:
                return watermark
            heappop(self._heap)
        return None
