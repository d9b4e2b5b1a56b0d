"""What is wrong with JSON that somebody sent, in words that need no knowledge of the decoder."""

import re

_KINDS = {
    "int": "a whole number", "float": "a number", "str": "a text", "bool": "true or false",
    "null": "null", "array": "a list", "object": "an object", "bytes": "text in base64",
    "uuid": "a UUID", "datetime": "a time", "date": "a date", "decimal": "a number",
    "Struct": "an object",
}  # fmt: skip
_PLACE = re.compile(r" - at `(key in )?\$([^`]*)`$")
_BYTE = re.compile(r"\s*\(byte (\d+)\)")
_GOT = re.compile(r"Expected `([^`]+)`, got `([^`]+)`")
_BOUND = re.compile(r"Expected `(\w+)` (>=|<=|>|<) (\S+)")
_LENGTH = re.compile(r"Expected `(\w+)` of length (>=|<=) (\d+)")
_FIELD = re.compile(r"Object (missing required|contains unknown) field `([^`]+)`")
_OTHERS = {
    "Number out of range": "Expected a number of the usual size, but found a larger one",
    "Invalid RFC3339 encoded datetime": "Expected a time such as 2026-01-31T12:00:00Z",
    "Invalid RFC3339 encoded date": "Expected a date such as 2026-01-31",
    "Invalid base64 encoded string": "Expected text in base64",
    "Invalid enum value": "Expected one of the known values, but found",
    "Invalid value": "Expected one of the known values, but found",
    "Expected `str` matching regex": "Expected a text that matches",
}
_BOUNDS = {">=": "at least", "<=": "at most", ">": "more than", "<": "less than"}


def said(error: Exception) -> str:
    """What a decoder said of a value, with the field: the beginning of a sentence or all of it."""
    text = str(error)
    if isinstance(error, UnicodeDecodeError):
        return f"Expected UTF-8, but byte {error.start} is not"
    if found := _BYTE.search(text):
        reason = _BYTE.sub("", text).removeprefix("JSON is malformed: ")
        return f"Expected JSON, but byte {found[1]} is wrong: {reason}"
    if text == "Input data was truncated":
        return "Expected JSON, but it ends too early"
    place = _PLACE.search(text)
    where = f" in {_path(place[2])}" if place and place[2] else ""
    return _without_place(_PLACE.sub("", text), where)


def _without_place(text: str, where: str) -> str:
    if found := _FIELD.fullmatch(text):
        if found[1].startswith("missing"):
            return f"Expected a field {found[2]}{where}, but there is none"
        return f"Expected no field {found[2]}{where}: it is unknown"
    if found := _GOT.fullmatch(text):
        return f"Expected {_kinds(found[1])}{where}, but found {_kinds(found[2])}"
    if found := _LENGTH.fullmatch(text):
        count = f"{_BOUNDS[found[2]]} {found[3]}"
        unit = "characters" if found[1] == "str" else "items"
        return f"Expected {_kinds(found[1])} of {count} {unit}{where}"
    if found := _BOUND.fullmatch(text):
        return f"Expected {_kinds(found[1])} of {_BOUNDS[found[2]]} {found[3]}{where}"
    for known, words in _OTHERS.items():
        if text.startswith(known):
            return words + text.removeprefix(known).replace("`", "'") + where
    return text.replace("`", "'") + where


def _kinds(text: str) -> str:
    """`int | null` in words."""
    return " or ".join(_KINDS.get(each.strip(), each.strip()) for each in text.split("|"))


def _path(text: str) -> str:
    """`.items[0].key` without the sign of the whole document."""
    return text.lstrip(".") if text.startswith(".") else f"item {text}"
