"""Forms: how files come in a request, beside JSON."""

from io import BytesIO

from multipart import MultipartError, MultipartParser, parse_options_header

from holdfast.errors import InvalidArgument
from holdfast.limits import RESOURCES_PER_DEPLOYMENT_MAX

_FIELDS_MAX = 8  # beside the files


def parts_of(media_type: bytes, body: bytes) -> list[tuple[str, str, bytes]]:
    """The name, the file's name and the content of each part; in memory, as the body is already."""
    _, options = parse_options_header(media_type.decode("latin-1"))
    boundary = options.get("boundary")
    if not boundary:
        raise InvalidArgument("Expected a form with a boundary, but its content-type names none")
    size = len(body) + 1
    try:
        parser = MultipartParser(
            BytesIO(body), boundary, len(body), strict=True,
            part_limit=RESOURCES_PER_DEPLOYMENT_MAX + _FIELDS_MAX,
            spool_limit=size, memory_limit=size,
        )  # fmt: skip
        return [(part.name or "", part.filename or "", part.raw) for part in parser]
    except MultipartError as error:
        raise InvalidArgument(f"Expected a form, but it cannot be read: {error}") from error
