"""The node itself: what it is, how it is, and its numbers."""
