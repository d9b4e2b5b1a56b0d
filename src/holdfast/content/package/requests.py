"""What a publication may be about: its paths, and what its message may say."""

from collections.abc import Sequence

from holdfast.content.blobs import is_binary_blob, package_blob
from holdfast.content.messages import Package, PackageAction
from holdfast.content.package.wrong import Wrong
from holdfast.content.paths import checked_path
from holdfast.content.repository.values import SHA256_BYTES
from holdfast.errors import InvalidArgument
from holdfast.limits import (
    CONTENT_BINARIES_MAX,
    CONTENT_INLINE_BYTES_MAX,
    CONTENT_PATHS_BYTES_MAX,
    CONTENT_PATHS_MAX,
    CONTENT_TOTAL_BYTES_MAX,
)


def check_message(message: Package) -> None:
    """Wrong if the fields of a message are not those that a publisher writes."""
    if wrong := wrong_paths(message.action, message.paths, message.deep_paths):
        raise Wrong(wrong)
    is_add = message.action is PackageAction.ADD
    if (message.content is not None) + (message.blob is not None) != is_add:
        raise Wrong(
            "expected an ADD to be in the message or in a blob, and nothing else to be anywhere"
        )
    if not is_add:
        if message.size_bytes or message.sha256 or message.binaries:
            raise Wrong(f"expected no content for {message.action.name}, but the message has some")
        return
    if len(message.sha256) != SHA256_BYTES:
        raise Wrong(f"expected a hash of {SHA256_BYTES} bytes, but found {len(message.sha256)}")
    size_bytes_max = (
        CONTENT_TOTAL_BYTES_MAX if message.content is None else CONTENT_INLINE_BYTES_MAX
    )
    if not 0 < message.size_bytes <= size_bytes_max:
        raise Wrong(f"expected up to {size_bytes_max} bytes, but found {message.size_bytes}")
    if message.blob is not None and message.blob != package_blob(message.sha256):
        raise Wrong(f"expected the blob {package_blob(message.sha256)}, but found another one")
    if len(message.binaries) > CONTENT_BINARIES_MAX:
        raise Wrong(f"expected up to {CONTENT_BINARIES_MAX} binaries in blobs, but found more")
    if len(set(message.binaries)) != len(message.binaries):
        raise Wrong("names the blob of a binary twice")
    for name in message.binaries:
        if not is_binary_blob(name):
            raise Wrong(f"expected the blob of a binary, but found {name[:100]!r}")


def wrong_paths(action: PackageAction, paths: Sequence[str], deep_paths: Sequence[str]) -> str:
    """What is wrong with the paths of a publication; "" if nothing is."""
    if not paths and action is not PackageAction.TEST:
        return f"expected a path for {action.name}, but there is none"
    if len(paths) > CONTENT_PATHS_MAX:
        return f"expected up to {CONTENT_PATHS_MAX} paths, but found {len(paths)}; split it"
    try:
        for path in paths:
            checked_path(path)
    except InvalidArgument as error:
        return error.message
    if sum(len(path.encode()) for path in paths) > CONTENT_PATHS_BYTES_MAX:
        return f"expected paths of up to {CONTENT_PATHS_BYTES_MAX} bytes in all; split it"
    known = frozenset(paths)
    if len(known) != len(paths):
        return "has one path twice"
    if len(deep_paths) > len(paths) or not known.issuperset(deep_paths):
        return "expected the deep paths to be among the paths, each once"
    if len(set(deep_paths)) != len(deep_paths):
        return "has one deep path twice"
    return ""
