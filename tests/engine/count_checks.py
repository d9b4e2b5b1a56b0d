"""Counts that are kept while rows change, against counting all rows."""

from collections import Counter
from typing import Any


def check_counts(view: Any) -> None:
    """What is told without looking at the rows is what the rows say."""
    jobs, incidents = view.jobs, view.incidents
    waiting: Counter[str] = Counter()
    for (type_, _, _), bits in jobs.waiting._rows.scan():
        waiting[type_] += bits.bit_count()
    assert +Counter(jobs.waiting.counts) == waiting
    held = Counter(jobs.jobs.get(key).submitted.type for key, _ in jobs.active.scan())
    assert +jobs.held_counts() == held
    leases = {key for key, _ in jobs.leases.scan()}
    assert set(jobs._types_held) == leases, "a lease that has ended is kept in memory"
    causes = Counter(
        (str(each.reason), each.job_type or each.process_id) for _, each in incidents.open.scan()
    )
    assert {(reason, of): count for reason, of, count in incidents.counts() if count} == causes
