"""How long members have been the same: who acts on a change waits until it is the last one."""

from collections.abc import Hashable


class Calm:
    """Looks at what is seen of the members; times are those of the loop, in seconds."""

    def __init__(self, now: float) -> None:
        self._seen: Hashable = None
        self._since = now
        self.is_rebalancing = True  # something came or went since all was shared evenly

    def see(self, seen: Hashable, now: float) -> None:
        """What is seen now; another sight than the last one begins the wait anew."""
        if seen != self._seen:
            self._seen, self._since = seen, now
            self.is_rebalancing = True

    def has_lasted(self, seconds: float, now: float) -> bool:
        return now - self._since >= seconds

    def rebalanced(self) -> None:
        """Everything is shared evenly: what is moved by hand from now on stays there."""
        self.is_rebalancing = False
