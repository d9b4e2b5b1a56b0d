"""What is read from forms and addresses, checked."""

import json
from enum import StrEnum
from typing import Any, TypeVar

import msgspec

from holdfast.console.page import PageAsk
from holdfast.errors import InvalidArgument

E = TypeVar("E", bound=StrEnum)


def chosen(ask: PageAsk, name: str, words: type[E]) -> E | None:
    """A word of the address; None if it has none."""
    text = ask.query.get(name)
    return None if text is None else word_of(text, name, words)


def wanted_word(ask: PageAsk, name: str, words: type[E]) -> E:
    """A word of the form."""
    return word_of(ask.wanted(name), name, words)


def word_of(text: str, name: str, words: type[E]) -> E:
    """A word that has to be one of some."""
    try:
        return words(text)
    except ValueError as error:
        known = ", ".join(words)
        raise InvalidArgument(
            f"Expected one of {known} for {name}, but found {text!r}", field=name
        ) from error


def whole(ask: PageAsk, name: str) -> int | None:
    """A whole number of the form; None where it is empty."""
    text = ask.form.get(name, "").strip()
    if not text:
        return None
    try:
        return int(text)
    except ValueError as error:
        raise InvalidArgument(
            f"Expected a whole number for {name}, but found {text!r}", field=name
        ) from error


def optional(ask: PageAsk, name: str) -> str | None:
    """A text of the form; None where it is empty."""
    return ask.form.get(name, "").strip() or None


def json_of(text: str, name: str) -> Any:
    """JSON that somebody wrote into a field."""
    try:
        return json.loads(text)
    except ValueError as error:
        raise InvalidArgument(f"Expected JSON for {name}, but {error}", field=name) from error


def raw_object(ask: PageAsk, name: str) -> msgspec.Raw:
    """A JSON object of the form, as it was written; an empty one where the field is empty."""
    text = ask.form.get(name, "").strip() or "{}"
    if not isinstance(json_of(text, name), dict):
        raise InvalidArgument(f"Expected a JSON object for {name}, but found other JSON")
    return msgspec.Raw(text.encode())
