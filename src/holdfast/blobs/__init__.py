"""Blobs: large pieces of bytes by name, in a folder or in S3, written whole or not at all."""

from holdfast.blobs.api import Blob, Blobs, Upload, put
from holdfast.blobs.opening import open_blobs

__all__ = ["Blob", "Blobs", "Upload", "open_blobs", "put"]
