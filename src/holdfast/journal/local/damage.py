"""What is damaged, for those who read everything and tell."""

import msgspec


class Damage(msgspec.Struct, frozen=True):
    """One thing that is not as it was written."""

    file: str
    position: int
    reason: str
