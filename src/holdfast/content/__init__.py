"""Content distribution: a publisher's packages in one log, taken in by any number of subscribers.

It stands on the journal's topics and on blobs, not on the engine's partitions.
"""
