"""Content repositories: trees of nodes with typed properties and binaries."""

from holdfast.content.repository.api import (
    DATA,
    EXECUTABLE,
    MODIFIED,
    Binary,
    ChangeSet,
    ContentNode,
    Properties,
    Repository,
    Scalar,
    Value,
)
from holdfast.content.repository.memory import MemoryRepository
from holdfast.content.repository.opening import open_repository

__all__ = [
    "DATA",
    "EXECUTABLE",
    "MODIFIED",
    "Binary",
    "ChangeSet",
    "ContentNode",
    "MemoryRepository",
    "Properties",
    "Repository",
    "Scalar",
    "Value",
    "open_repository",
]
