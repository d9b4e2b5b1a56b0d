"""Payloads and variables as they come from the command line."""

import re
import sys
from pathlib import Path

import msgspec

from holdfast.errors import InvalidArgument
from holdfast.json_words import said

_BYTE = re.compile(r"\s*\(byte (\d+)\)")


def parse_payload(text: str) -> msgspec.Raw:
    """The JSON in an argument, or on standard input for `-`; InvalidArgument if it is none."""
    content = sys.stdin.read() if text == "-" else text
    _decode(content, "JSON as the payload", "it")
    return msgspec.Raw(content.encode())


def parse_variables(text: str) -> msgspec.Raw:
    """Variables, as `parse_object` reads them."""
    return parse_object(text, "--variables", "variables")


def parse_object(text: str, option: str, what: str) -> msgspec.Raw:
    """The JSON object in an option, in a file for `@FILE`, or on standard input for `-`."""
    content, place = text, option
    if text == "-":
        content, place = sys.stdin.read(), "standard input"
    elif text.startswith("@"):
        place = text[1:]
        try:
            content = Path(place).read_text()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            raise InvalidArgument(
                f"The {what} in {place} cannot be read: {str(reason).lower()}"
            ) from error
    found = _decode(content, f"{what} as a JSON object", place)
    if not isinstance(found, dict):
        kind = {list: "a list", str: "a text", type(None): "null"}.get(type(found), "a value")
        raise InvalidArgument(
            f"Expected {what} as a JSON object, but {place} is {kind}: {_shortened(content)}"
        )
    return msgspec.Raw(content.encode())


def _decode(content: str, expected: str, place: str) -> object:
    try:
        return msgspec.json.decode(content)
    except msgspec.DecodeError as error:
        reason, where = str(error), ""
        if found := _BYTE.search(reason):
            before = content.encode()[: int(found[1])].decode(errors="replace")
            line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
            reason, where = _BYTE.sub("", reason), f" at line {line}, column {column}"
            reason = reason.removeprefix("JSON is malformed: ")
        else:
            reason = said(error).removeprefix("Expected JSON, but ")
        raise InvalidArgument(
            f"Expected {expected}, but {place} is not JSON{where}: {reason}, {_shortened(content)}"
        ) from error


def _shortened(content: str) -> str:
    return repr(content if len(content) <= 60 else f"{content[:57]}...")


def pair(text: str, option: str) -> tuple[str, str]:
    """The two ids in FROM:TO."""
    source, colon, target = text.partition(":")
    if not (source and colon and target):
        raise InvalidArgument(f"Expected FROM:TO after {option}, but found {text!r}")
    return source, target
