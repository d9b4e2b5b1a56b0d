"""Sessions of a group's members at the home of groups: who is heard, and until when.

A member is heard whenever it asks for the generation. One that is not heard for the session's time
is given up. Times are of the caller's clock, in seconds.
"""

from collections.abc import Iterable

from holdfast.errors import AlreadyExists, NotFound
from holdfast.groups.api import MemberId, name_of
from holdfast.groups.local import Hub

_SUPERSEDED_MAX = 100  # sessions that are told so, and not only that they are over


class Sessions:
    """The members of one group that are heard here, on top of its hub."""

    def __init__(self, group: str, hub: Hub) -> None:
        self._group = group
        self._hub = hub
        self._members: dict[str, MemberId] = {}  # by session
        self._sessions: dict[MemberId, str] = {}
        self._until: dict[MemberId, float] = {}
        self._spans: dict[MemberId, float] = {}
        self._superseded: dict[str, None] = {}  # sessions, oldest first

    def restore(self, members: Iterable[MemberId], until: float) -> None:
        """Members of the generation that the log has: they have so long to come back."""
        for each in members:
            self._until[each] = until

    def join(
        self, session: str, member: MemberId, card: bytes, known: int, now: float, span: float
    ) -> None:
        """Begins a session; a former one of the same member, or of its name, ends."""
        former = self._sessions.pop(member, None)
        if former is not None:
            del self._members[former]
        for other in [each for each in self._until if name_of(each) == name_of(member)]:
            if other != member:  # an earlier start of the same program
                self._superseded[self._sessions.get(other, "")] = None
                self._forget(other)
        while len(self._superseded) > _SUPERSEDED_MAX:
            del self._superseded[next(iter(self._superseded))]
        self._members[session] = member
        self._sessions[member] = session
        self._spans[member] = span
        self._until[member] = now + span
        self._hub.join(member, card, known)

    def heard(self, session: str, now: float) -> MemberId:
        """The member of a session has asked; NotFound if the session is over."""
        member = self._members.get(session)
        if member is None and session in self._superseded:
            raise AlreadyExists(
                f"Another program has joined group {self._group!r} under the name of this member;"
                " each program needs a name of its own",
                group=self._group,
            )
        if member is None:
            raise NotFound(
                f"The session in group {self._group!r} is over or of a former home; join again",
                group=self._group,
            )
        self._until[member] = max(self._until[member], now + self._spans[member])
        return member

    def leave(self, session: str) -> None:
        """The member goes by itself."""
        member = self._members.get(session)
        if member is not None:
            self._forget(member)

    def expire(self, now: float) -> list[MemberId]:
        """Gives up the members that were not heard in time; who they are."""
        gone = [member for member, until in self._until.items() if until <= now]
        for member in gone:
            self._forget(member)
        return gone

    @property
    def next_end(self) -> float | None:
        """When the next session ends if its member is not heard again; None without members."""
        return min(self._until.values(), default=None)

    @property
    def count(self) -> int:
        """Members that are heard, or are given time to come back."""
        return len(self._until)

    def _forget(self, member: MemberId) -> None:
        session = self._sessions.pop(member, None)
        if session is not None:
            del self._members[session]
        self._until.pop(member, None)
        self._spans.pop(member, None)
        self._hub.leave(member)
