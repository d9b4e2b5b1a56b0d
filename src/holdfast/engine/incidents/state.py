"""The open incidents of a partition."""

from collections.abc import Iterator
from itertools import groupby, islice

import msgspec

from holdfast.engine.families import Tag
from holdfast.engine.incidents.values import Incident, JobIncident, error_line
from holdfast.state import EMPTY, PartitionState
from holdfast.state.keys import U64, U64_U64

_INDEXED_AT_ONCE = 4_096  # rows, about 1 MiB in memory until the store has them


class Incidents:
    """Incidents that nobody has resolved or discarded yet."""

    def __init__(self, state: PartitionState) -> None:
        self.open = state.family(Tag.INCIDENTS, U64, Incident)
        # (instance, incident), one row for each that is open; those of tasks have instance 0
        self._of_instances = state.family(Tag.INSTANCE_INCIDENTS, U64_U64, bytes)
        self._counts = state.tally(Tag.INCIDENT_COUNTS)  # by cause

    # --- what can be asked --------------------------------------------------------------------

    def of_instance(self, instance_key: int, after: int = 0) -> Iterator[tuple[int, Incident]]:
        """The incidents of a process instance behind a key, oldest first."""
        rows = self._of_instances.scan((instance_key,), (instance_key, after + 1))
        for (_, key), _ in rows:
            incident = self.open.get(key)
            assert incident is not None, f"incident {key} is in the index and not in the state"
            yield key, incident

    def stops(self, instance_key: int) -> bool:
        """Whether an incident stops a process instance."""
        return bool(self._of_instances.first_keys((instance_key,), None, 1))

    def by_instance(self, start: int) -> Iterator[tuple[int, int]]:
        """The process instances with incidents from a key on, with how many each has."""
        rows = self._of_instances.scan(start=(start, 0))
        for key, incidents in groupby(rows, lambda row: row[0][0]):
            yield key, sum(1 for _ in incidents)

    def counts(self) -> Iterator[tuple[str, str, int]]:
        """How many are open for each reason and each type of job, or process without one."""
        for cause, count in self._counts.counts.items():
            reason, _, of = cause.partition("/")
            yield reason, of, count

    def ending(self, key: int) -> JobIncident:
        """The end of an incident as the log tells it, with what it was about."""
        incident = self.open.get(key)
        if incident is None:
            return JobIncident()
        short = msgspec.structs.replace(incident, error=error_line(incident.error))
        return JobIncident(incident.job_key, short)

    # --- what appliers change -----------------------------------------------------------------

    def add(self, key: int, incident: Incident) -> None:
        self.open.insert(key, incident)
        self._counts.add(_cause(incident), 1)
        self._of_instances.insert((incident.instance_key, key), EMPTY)

    def end(self, key: int) -> None:
        incident = self.open.get(key)
        if incident is not None:
            self.open.delete(key)
            self._counts.add(_cause(incident), -1)
            self._of_instances.delete((incident.instance_key, key))

    def change(self, key: int, incident: Incident) -> None:
        """What an incident stops is called otherwise now."""
        former = self.open.get(key)
        assert former is not None, f"incident {key} changes and is not in the state"
        self.open.put(key, incident)
        self._counts.add(_cause(former), -1)
        self._counts.add(_cause(incident), 1)

    # --- what an earlier version did not write ------------------------------------------------

    def count(self) -> None:
        """Counts the rows of a state that an earlier version has written without counts."""
        for _, incident in self.open.scan():
            self._counts.add(_cause(incident), 1)

    def missing_index(self) -> Iterator[int]:
        """Adds the rows of the index to a state without them, a part at a time.

        The row of the oldest incident comes last. Where it is there, so are all the others: also
        after a crash between two parts, which begins again.
        """
        oldest = next(self.open.scan(), None)
        if oldest is None or self._of_instances.get((oldest[1].instance_key, oldest[0])) == EMPTY:
            return
        after = oldest[0]
        while rows := list(islice(self.open.scan(start=after + 1), _INDEXED_AT_ONCE)):
            for after, incident in rows:
                self._of_instances.put((incident.instance_key, after), EMPTY)
            yield len(rows)
        self._of_instances.put((oldest[1].instance_key, oldest[0]), EMPTY)
        yield 1


def _cause(incident: Incident) -> str:
    return f"{incident.reason}/{incident.job_type or incident.process_id}"
