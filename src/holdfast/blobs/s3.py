"""Blobs in S3, or whatever speaks its protocol. The only module that imports obstore.

It is loaded when a store in S3 is opened: nobody else waits for it.
"""

import itertools
from collections.abc import Iterator, Mapping
from datetime import timedelta
from types import TracebackType
from typing import Any

import obstore
from obstore import exceptions
from obstore.store import S3Store

from holdfast.blobs.api import (
    Blob,
    behind_the_end,
    checked_name,
    checked_prefix,
    checked_range,
    no_blob,
)
from holdfast.errors import Forbidden, HoldfastError, InvalidArgument, NotFound, Unavailable
from holdfast.limits import (
    BLOB_PART_BYTES,
    BLOB_PARTS_IN_FLIGHT_MAX,
    BLOB_PIECE_BYTES,
    BLOB_RETRIES_MAX,
    BLOB_RETRY_MS_MAX,
)

_CREDENTIALS = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"


class S3Blobs:
    """Blobs under a prefix of a bucket. Settings that are not given come from AWS_*."""

    def __init__(self, bucket: str, prefix: str, settings: Mapping[str, str]) -> None:
        endpoint = settings.get("endpoint", "")
        self.bucket = bucket
        self.url = f"s3://{bucket}/{prefix}".rstrip("/") + (f" at {endpoint}" if endpoint else "")
        given: dict[str, Any] = dict(settings)
        try:
            self._store = S3Store(
                bucket,
                prefix=prefix or None,
                client_options={"allow_http": endpoint.startswith("http://")},
                retry_config={
                    "max_retries": BLOB_RETRIES_MAX,
                    "retry_timeout": timedelta(milliseconds=BLOB_RETRY_MS_MAX),
                },
                **given,
            )
        except (exceptions.BaseError, ValueError) as error:
            raise InvalidArgument(
                f"Expected settings for {self.url}, but {_first_line(error)}", store=self.url
            ) from error

    def upload(self, name: str) -> "_S3Upload":
        return _S3Upload(self, self._store, checked_name(name))

    def get(self, name: str, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        checked_range(start, end)
        blob = self.head(name)
        if blob is None:
            raise no_blob(name, self.url)
        if start > blob.size_bytes:
            raise behind_the_end(name, self.url, start)
        end = blob.size_bytes if end is None else min(end, blob.size_bytes)
        return self._pieces(name, start, end) if start < end else iter(())

    def _pieces(self, name: str, start: int, end: int) -> Iterator[bytes]:
        """A request for each piece, which is tried again by itself if its connection breaks."""
        for at in range(start, end, BLOB_PART_BYTES):
            upto = min(at + BLOB_PART_BYTES, end)
            try:
                part = memoryview(obstore.get_range(self._store, name, start=at, end=upto))
            except Exception as error:
                raise self.failed("read", name, error) from error
            for low in range(0, len(part), BLOB_PIECE_BYTES):
                yield bytes(part[low : low + BLOB_PIECE_BYTES])

    def head(self, name: str) -> Blob | None:
        try:
            return Blob(name, obstore.head(self._store, checked_name(name))["size"])
        except FileNotFoundError:
            return None
        except exceptions.BaseError as error:
            raise self.failed("look for", name, error) from error

    def list(self, prefix: str = "") -> Iterator[Blob]:
        # S3 finds names below a folder; what the last part begins with is sorted out here.
        within = checked_prefix(prefix).rpartition("/")[0]
        try:
            pages = list(obstore.list(self._store, within or None))
        except Exception as error:
            raise self.failed("list", f"{prefix}*", error) from error
        found = itertools.chain.from_iterable(pages)
        return iter(
            sorted(Blob(each["path"], each["size"]) for each in found
                   if each["path"].startswith(prefix))
        )  # fmt: skip

    def delete(self, name: str) -> None:
        try:
            obstore.delete(self._store, checked_name(name))
        except FileNotFoundError:
            return
        except exceptions.BaseError as error:
            raise self.failed("delete", name, error) from error

    def failed(self, what: str, name: str, error: Exception) -> HoldfastError:
        """What S3 said, as an error that says what to do."""
        reason = _first_line(error)
        text = f"Failed to {what} the blob {name} in {self.url}: {reason}"
        if "NoSuchBucket" in reason:
            return NotFound(
                f"{text}; create the bucket {self.bucket}, or correct the store's URL",
                blob=name, store=self.url,
            )  # fmt: skip
        if isinstance(error, FileNotFoundError):
            return no_blob(name, self.url)
        if isinstance(error, exceptions.PermissionDeniedError | exceptions.UnauthenticatedError):
            return Forbidden(
                f"{text}; check {_CREDENTIALS}, and what they are allowed to do",
                blob=name, store=self.url,
            )  # fmt: skip
        return Unavailable(
            f"{text}; check that the endpoint can be reached from here", blob=name, store=self.url
        )


class _S3Upload:
    """Parts that become a blob when the last one is there. S3 forgets them if it is given up."""

    def __init__(self, blobs: S3Blobs, store: Any, name: str) -> None:
        self._blobs = blobs
        self._store = store
        self._name = name
        self._writer: Any = None

    def __enter__(self) -> "_S3Upload":
        self._writer = obstore.open_writer(
            self._store,
            self._name,
            buffer_size=BLOB_PART_BYTES,
            max_concurrency=BLOB_PARTS_IN_FLIGHT_MAX,
        )
        return self

    def write(self, piece: bytes) -> None:
        try:
            self._writer.write(piece)
        except Exception as error:
            raise self._blobs.failed("write", self._name, error) from error

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._writer.__exit__(kind, error, trace)
        except Exception as failure:
            if kind is None:  # otherwise the first error is the one to be told
                raise self._blobs.failed("write", self._name, failure) from failure


def _first_line(error: Exception) -> str:
    """What obstore says, without its own inner structure; an answer of S3 in one line."""
    text = str(error).split("\n\nDebug source")[0].removeprefix("Generic S3 error: ")
    return " ".join(text.split())
