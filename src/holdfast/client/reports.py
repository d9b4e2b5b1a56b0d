"""Reports of a worker: as many in a request as it can carry."""

from collections.abc import Iterator

import msgspec

from holdfast.client.attempt import Done
from holdfast.gateway.tasks.shapes import JobCompletion, JobFailure
from holdfast.limits import JOBS_PER_REPORT_MAX, PAYLOAD_BYTES_MAX, REQUEST_BYTES_MAX


def too_large(done: Done) -> Done:
    """A result that no request can carry is a failure that says so."""
    size_bytes = len(done.result or b"")
    error = (
        f"Expected a result of at most {PAYLOAD_BYTES_MAX} bytes, but found {size_bytes};"
        " put large content elsewhere and return a reference to it"
    )
    return Done(done.job, error=error, final=True)


def completions_of(done: list[Done]) -> list[JobCompletion]:
    """Those that came to their end with a result."""
    return [
        JobCompletion(item.job.job_key, item.job.lease, msgspec.Raw(item.result))
        for item in done
        if item.result is not None
    ]


def failures_of(done: list[Done]) -> list[JobFailure]:
    """Those that raised, unless a transaction has completed their jobs."""
    return [
        JobFailure(item.job.job_key, item.job.lease, item.error, item.final, item.retry_after_ms)
        for item in done
        if item.error is not None and not item.is_over
    ]


def pieces(done: list[Done]) -> Iterator[list[Done]]:
    """Reports in as many requests as their number and their bytes need."""
    piece: list[Done] = []
    piece_bytes = 0
    for item in done:
        size_bytes = len(item.result or item.error or "")
        full = len(piece) == JOBS_PER_REPORT_MAX or piece_bytes + size_bytes > REQUEST_BYTES_MAX
        if piece and full:
            yield piece
            piece, piece_bytes = [], 0
        piece.append(item)
        piece_bytes += size_bytes
    yield piece
