"""Payloads as they come from the command line."""

import sys

import msgspec

from holdfast.errors import InvalidArgument


def parse_payload(text: str) -> msgspec.Raw:
    """The JSON in an argument, or on standard input for `-`; InvalidArgument if it is none."""
    content = sys.stdin.read() if text == "-" else text
    try:
        msgspec.json.decode(content)
    except msgspec.DecodeError as error:
        raise InvalidArgument(
            f"Expected JSON as the payload, but {error} in {content[:60]!r}"
        ) from error
    return msgspec.Raw(content.encode())
