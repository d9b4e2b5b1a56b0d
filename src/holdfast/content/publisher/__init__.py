"""The node's side of content distribution: the log of packages, and the queues that follow from it.

What is known is a fold over the five topics (`state.py`, pure); `service.py` is the shell around.
"""

from holdfast.content.publisher.service import ContentService

__all__ = ["ContentService"]
