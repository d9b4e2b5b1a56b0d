"""A blob store from the text that names it: a folder, or a URL of S3."""

import os
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from holdfast.blobs.api import Blobs, checked_name
from holdfast.blobs.folder import FolderBlobs
from holdfast.errors import InvalidArgument

_FORMS = "a folder, file:///FOLDER, or s3://BUCKET/PREFIX?endpoint=URL&region=NAME"
_SETTINGS = ("endpoint", "region")


def open_blobs(url: str, *, create: bool = True) -> Blobs:
    """Opens the store that a folder or a URL names; a folder is made, if it is to be created.

    Credentials of S3 come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or stand in the URL,
    with %XX for what is no letter or digit: s3://KEY:SECRET@BUCKET/PREFIX.
    """
    parts = urlsplit(url)
    if len(parts.scheme) < 2:  # none, or the drive of a path
        return FolderBlobs(_folder(url), create=create)
    if parts.scheme == "file" and parts.netloc in ("", "localhost"):
        return FolderBlobs(_folder(unquote(parts.path)), create=create)
    if parts.scheme != "s3" or not parts.hostname:
        shown = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
        raise InvalidArgument(f"Expected a blob store as {_FORMS}, but found {shown}")
    return _open_s3(url)


def _folder(text: str) -> Path:
    if not text:
        raise InvalidArgument(f"Expected a blob store as {_FORMS}, but found nothing")
    return Path(text).expanduser().absolute()


def _open_s3(url: str) -> Blobs:
    from holdfast.blobs.s3 import S3Blobs  # obstore: 16 MB that only S3 needs

    parts = urlsplit(url)
    settings = dict(parse_qsl(parts.query))
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    if endpoint and "endpoint" not in settings:
        settings["endpoint"] = endpoint
    if unknown := settings.keys() - _SETTINGS:
        raise InvalidArgument(
            f"Expected {' and '.join(_SETTINGS)} behind the ? of an S3 URL, but found"
            f" {', '.join(sorted(unknown))}"
        )
    if "@" in parts.netloc:
        if not parts.username or not parts.password:
            raise InvalidArgument(
                "Expected credentials as KEY:SECRET before the @ of an S3 URL, but found only"
                " one of them; leave both out to take them from AWS_ACCESS_KEY_ID and"
                " AWS_SECRET_ACCESS_KEY"
            )
        settings["access_key_id"] = unquote(parts.username)
        settings["secret_access_key"] = unquote(parts.password)
    prefix = parts.path.strip("/")
    bucket = parts.netloc.rpartition("@")[2]
    return S3Blobs(bucket, checked_name(prefix) if prefix else "", settings)


def split_name(url: str) -> tuple[str, str]:
    """The store and the blob's name in the text that names one blob: its last part."""
    parts = urlsplit(url)
    if len(parts.scheme) < 2:
        path = Path(url)
        return str(path.parent), path.name
    head, _, name = parts.path.rstrip("/").rpartition("/")
    return parts._replace(path=head or "/").geturl(), name
