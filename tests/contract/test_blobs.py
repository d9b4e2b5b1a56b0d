"""What every blob store promises: the same suite over a folder, S3 (moto) and memory."""

import itertools
import os
import signal
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from s3_server import BUCKET, KEY, SECRET, s3_server, unsteady, uploads_under_way

from holdfast.blobs import Blob, Blobs, open_blobs, put
from holdfast.blobs.memory import MemoryBlobs
from holdfast.blobs.opening import split_name
from holdfast.errors import (
    Forbidden,
    HoldfastError,
    InvalidArgument,
    NotFound,
    ResourceExhausted,
    Unavailable,
)
from holdfast.limits import BLOB_PART_BYTES, MIB

_prefixes = itertools.count()


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    with s3_server() as address:
        yield address


def s3_url(address: str, prefix: str = "", bucket: str = BUCKET) -> str:
    secret = quote(SECRET, safe="")
    return f"s3://{KEY}:{secret}@{bucket}/{prefix}?endpoint={address}&region=us-east-1"


@pytest.fixture(params=["memory", "folder", "s3"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> Blobs:
    if request.param == "memory":
        return MemoryBlobs()
    if request.param == "folder":
        return open_blobs(str(tmp_path / "blobs"))
    return open_blobs(s3_url(request.getfixturevalue("s3"), f"tests/{next(_prefixes)}"))


def read(blobs: Blobs, name: str, start: int = 0, end: int | None = None) -> bytes:
    return b"".join(blobs.get(name, start, end))


def names(blobs: Blobs, prefix: str = "") -> list[str]:
    return [blob.name for blob in blobs.list(prefix)]


@pytest.mark.parametrize("pieces", [[], [b""], [b"hello"], [b"a" * 1_000] * 7])
def test_a_blob_is_the_sum_of_its_pieces(blobs: Blobs, pieces: list[bytes]) -> None:
    whole = b"".join(pieces)
    assert put(blobs, "one", pieces) == len(whole)
    assert read(blobs, "one") == whole
    assert blobs.head("one") == Blob("one", len(whole))
    assert list(blobs.list()) == [Blob("one", len(whole))]


def test_a_blob_of_several_parts_is_stored_and_read_in_pieces(blobs: Blobs) -> None:
    pieces = [bytes([number]) * MIB for number in range(2 * BLOB_PART_BYTES // MIB + 1)]
    put(blobs, "large/one", iter(pieces))
    found = list(blobs.get("large/one"))
    assert b"".join(found) == b"".join(pieces)
    assert max(map(len, found)) <= MIB
    low, high = MIB - 1, BLOB_PART_BYTES + MIB + 1
    assert read(blobs, "large/one", low, high) == b"".join(pieces)[low:high]


@pytest.mark.parametrize(("start", "end"), [(0, 3), (2, 2), (3, None), (4, 100), (10, None)])
def test_a_range_is_cut_at_the_blobs_end(blobs: Blobs, start: int, end: int | None) -> None:
    put(blobs, "digits", [b"0123456789"])
    assert read(blobs, "digits", start, end) == b"0123456789"[start:end]


@pytest.mark.parametrize(("start", "end"), [(11, None), (-1, 3), (3, 2)])
def test_a_range_outside_of_the_blob_is_refused(blobs: Blobs, start: int, end: int | None) -> None:
    put(blobs, "digits", [b"0123456789"])
    with pytest.raises(InvalidArgument):
        read(blobs, "digits", start, end)


def test_what_is_not_there_is_named(blobs: Blobs) -> None:
    put(blobs, "folder/one", [b"1"])
    for missing in ("none", "folder", "folder/one/two"):
        assert blobs.head(missing) is None
        with pytest.raises(NotFound, match=missing) as caught:
            read(blobs, missing)
        assert caught.value.fields["blob"] == missing
        blobs.delete(missing)
    assert names(blobs) == ["folder/one"]


def test_blobs_are_listed_by_the_beginning_of_their_names_in_order(blobs: Blobs) -> None:
    made = ["a/1", "a/2", "a/20/x", "ab", "b/1", "a=1/y"]
    for name in made:
        put(blobs, name, [b"x"])
    assert names(blobs) == sorted(made)
    assert names(blobs, "a/") == ["a/1", "a/2", "a/20/x"]
    assert names(blobs, "a/2") == ["a/2", "a/20/x"]
    assert names(blobs, "a") == sorted(name for name in made if name.startswith("a"))
    assert names(blobs, "c/") == []


def test_a_blob_is_replaced_as_a_whole_and_deleted(blobs: Blobs) -> None:
    put(blobs, "one", [b"first, and longer"])
    with blobs.upload("one") as upload:
        upload.write(b"second")
        assert read(blobs, "one") == b"first, and longer"
    assert read(blobs, "one") == b"second"
    blobs.delete("one")
    assert blobs.head("one") is None and names(blobs) == []


@pytest.mark.parametrize("pieces", [1, 2 * BLOB_PART_BYTES // MIB + 1])
def test_an_upload_that_fails_in_the_middle_leaves_nothing(
    blobs: Blobs, pieces: int, request: pytest.FixtureRequest
) -> None:
    def failing() -> Iterator[bytes]:
        yield from itertools.repeat(b"x" * MIB, pieces)
        raise RuntimeError("the caller had a bug")

    with pytest.raises(RuntimeError, match="the caller had a bug"):
        put(blobs, "one", failing())
    assert blobs.head("one") is None and names(blobs) == []
    if blobs.url.startswith("s3:"):
        assert uploads_under_way(request.getfixturevalue("s3")) == 0


def test_a_generator_that_is_closed_in_the_middle_leaves_nothing(blobs: Blobs) -> None:
    def storing() -> Iterator[None]:
        with blobs.upload("one") as upload:
            while True:
                upload.write(b"x" * 1_000)
                yield

    pieces = storing()
    next(pieces)
    next(pieces)
    pieces.close()  # type: ignore[attr-defined]
    assert names(blobs) == []


@pytest.mark.parametrize(
    "name", ["", "/a", "a/", "a//b", "../a", "a/../b", ".a", "a/.b", "a b", "ä", "a" * 501, "a\n"]
)
def test_a_name_that_not_every_store_can_have_is_refused(blobs: Blobs, name: str) -> None:
    for use in (blobs.head, blobs.delete, blobs.get, blobs.upload):
        with pytest.raises(InvalidArgument, match="name of a blob"):
            use(name)
    with pytest.raises(InvalidArgument):
        list(blobs.list("../"))


def test_a_large_upload_takes_little_memory(tmp_path: Path) -> None:
    blobs = open_blobs(str(tmp_path))
    tracemalloc.start()
    put(blobs, "large", (bytes(MIB) for _ in range(64)))
    for _ in blobs.get("large"):
        pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * MIB


# --- a folder ---------------------------------------------------------------------------------

CHILD = """
import sys, os
from holdfast.blobs import open_blobs
with open_blobs(sys.argv[1]).upload("a/one") as upload:
    upload.write(b"half of it")
    print("wrote", flush=True)
    sys.stdin.read()
"""


def test_what_a_killed_process_left_is_not_seen_and_goes_with_the_next_upload(
    tmp_path: Path,
) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(tmp_path)], text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert child.stdout is not None and child.stdout.readline() == "wrote\n"

    def parts() -> list[Path]:
        return list(tmp_path.rglob("*-part"))

    blobs = open_blobs(str(tmp_path))
    put(blobs, "a/two", [b"2"])
    assert names(blobs) == ["a/two"] and len(parts()) == 1  # somebody works on the other
    child.send_signal(signal.SIGKILL)
    child.communicate()
    assert names(open_blobs(str(tmp_path))) == ["a/two"]
    put(blobs, "a/three", [b"3"])
    assert parts() == []


def test_a_folder_that_is_only_read_is_not_made(tmp_path: Path) -> None:
    blobs = open_blobs(str(tmp_path / "none"), create=False)
    assert names(blobs) == [] and blobs.head("one") is None
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_synced_before_it_has_its_name_and_the_name_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blobs = open_blobs(str(tmp_path / "blobs"))
    put(blobs, "a/zero", [b"0"])
    done: list[str] = []
    fsync, rename = os.fsync, Path.rename
    monkeypatch.setattr(
        os,
        "fsync",
        lambda file: done.append(str(Path(f"/proc/self/fd/{file}").readlink())) or fsync(file),
    )
    monkeypatch.setattr(
        Path, "rename", lambda old, new: done.append(f"-> {new}") or rename(old, new)
    )
    put(blobs, "a/one", [b"1"])
    *_, file, moved, folder = done
    assert file.endswith("-part") and moved == f"-> {tmp_path}/blobs/a/one"
    assert folder == f"{tmp_path}/blobs/a"


def test_a_disk_that_is_full_or_fails_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blobs = open_blobs(str(tmp_path))

    def fails(number: int) -> None:
        def write(*_: object) -> int:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(os, "write", write)

    fails(28)
    with pytest.raises(ResourceExhausted, match=r"write the blob one in .*no space.*make room"):
        put(blobs, "one", [b"1"])
    fails(5)
    with pytest.raises(Unavailable, match=r"write the blob one in .*check the folder"):
        put(blobs, "one", [b"1"])
    monkeypatch.undo()
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("")
    with pytest.raises(Unavailable, match=r"Failed to open the store in .*: not a directory"):
        open_blobs(str(tmp_path / "file" / "blobs"))


# --- S3 ---------------------------------------------------------------------------------------


def test_passing_failures_of_s3_are_tried_again(s3: str) -> None:
    with unsteady(s3, failures=2) as (address, asked):
        blobs = open_blobs(s3_url(address, "unsteady"))
        put(blobs, "one", [b"1"])
        assert read(blobs, "one") == b"1"
    assert asked[:3] == ["PUT", "PUT", "PUT"]


def test_an_s3_that_cannot_be_reached_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.blobs.s3.BLOB_RETRIES_MAX", 1)
    blobs = open_blobs(s3_url("http://127.0.0.1:1", "prefix"))
    for what, use in (
        ("write", lambda: put(blobs, "one", [b"1"])),
        ("look for", lambda: blobs.head("one")),
        ("look for", lambda: read(blobs, "one")),
        ("list", lambda: names(blobs)),
        ("delete", lambda: blobs.delete("one")),
    ):
        with pytest.raises(Unavailable) as caught:
            use()
        text = caught.value.message
        assert f"to {what} the blob" in text and "s3://holdfast/prefix at http" in text
        assert "Debug" not in text and SECRET not in text and "\n" not in text


def test_a_bucket_that_does_not_exist_is_named(s3: str) -> None:
    blobs = open_blobs(s3_url(s3, bucket="nobody"))
    for use in (lambda: put(blobs, "one", [b"1"]), lambda: names(blobs)):
        with pytest.raises(NotFound, match="create the bucket nobody"):
            use()


def test_what_s3_does_not_allow_is_forbidden() -> None:
    from obstore.exceptions import PermissionDeniedError

    from holdfast.blobs.s3 import S3Blobs

    blobs = S3Blobs("bucket", "", {"region": "us-east-1"})
    error = blobs.failed("write", "one", PermissionDeniedError("403\n\nDebug source: x"))
    assert isinstance(error, Forbidden)
    assert "write the blob one in s3://bucket: 403; check AWS_ACCESS_KEY_ID" in error.message


def test_credentials_and_endpoint_come_from_the_environment(
    s3: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": s3,
    }.items():
        monkeypatch.setenv(name, value)
    blobs = open_blobs(f"s3://{BUCKET}/environment")
    put(blobs, "one", [b"1"])
    assert read(open_blobs(s3_url(s3, "environment")), "one") == b"1"


# --- opening ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    ["", "gs://bucket", "http://x/y", "s3://", "s3:///x", "file://host/x", "s3://b/a?color=red",
     "s3://b/a b", "s3://key@b/a", "s3://key:@b/a"],
)  # fmt: skip
def test_a_store_that_nobody_can_open_is_refused(url: str) -> None:
    with pytest.raises(InvalidArgument):
        open_blobs(url)


def test_a_folder_is_named_as_a_path_or_a_url(tmp_path: Path) -> None:
    put(open_blobs(str(tmp_path / "a b")), "one", [b"1"])
    assert names(open_blobs(f"file://{quote(str(tmp_path))}/a%20b")) == ["one"]


@pytest.mark.parametrize(
    ("url", "store", "name"),
    [
        ("backup/one.export", "backup", "one.export"),
        ("one.export", ".", "one.export"),
        ("s3://k:s@b/p/one?region=x", "s3://k:s@b/p?region=x", "one"),
        ("s3://b/one", "s3://b/", "one"),
        ("file:///a/one", "file:///a", "one"),
    ],
)
def test_the_last_part_of_a_blobs_url_is_its_name(url: str, store: str, name: str) -> None:
    assert split_name(url) == (store, name)


def test_nobody_who_has_no_s3_waits_for_obstore() -> None:
    code = "import sys, holdfast, holdfast.node, holdfast.cli.main; print('obstore' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert done.stdout.strip() == "False"


def test_memory_fails_when_it_is_told_to() -> None:
    blobs = MemoryBlobs()
    put(blobs, "one", [b"1"])
    blobs.failure = Unavailable("the network is gone")
    for use in (
        lambda: put(blobs, "two", [b""]),
        lambda: read(blobs, "one"),
        lambda: names(blobs),
        lambda: blobs.head("one"),
        lambda: blobs.delete("one"),
    ):
        with pytest.raises(HoldfastError):
            use()
    blobs.failure = None
    assert names(blobs) == ["one"]
