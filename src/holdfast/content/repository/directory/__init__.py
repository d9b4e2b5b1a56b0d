"""Content as plain files: two trees, of which a link names the one that stands.

`www` is a link to `.www.holdfast/a` or to `.www.holdfast/b`. The tree that stands is never changed.
A commit brings the other one up, changes it, syncs it, and renames a new link over `www`. Notes and
properties are in an index of each tree, so the link decides over them as well.
"""

from holdfast.content.repository.directory.repository import DirectoryRepository

__all__ = ["DirectoryRepository"]
