"""Ids for what nobody named: derived from a neighbour, so that a change elsewhere keeps them.

Modification and migration name elements by their ids, and running instances remember them.
"""

from collections.abc import Iterable

from holdfast.limits import NAME_CHARS_MAX
from holdfast.model.rules.structure import NOT_IN_IDS

_STEM_CHARS_MAX = NAME_CHARS_MAX // 2 - 10  # two of them, `--` and a number are one id


class Names:
    """The ids of one process: what was given is never taken, what is derived is numbered."""

    def __init__(self, given: Iterable[str]) -> None:
        self._taken = set(given)
        self._repeats: dict[str, int] = {}

    def derive(self, neighbour: str, suffix: str) -> str:
        """`charge` and `end` are `charge-end`, then `charge-end-2`."""
        return self.derive_pair(neighbour, suffix, suffix)[0]

    def derive_pair(self, neighbour: str, first: str, second: str) -> tuple[str, str]:
        """Two ids with the same number: `charge-choice-2` meets again at `charge-merge-2`."""
        stem = f"{neighbour[:_STEM_CHARS_MAX]}-"
        return self._free(
            stem + NOT_IN_IDS.sub("_", first[:_STEM_CHARS_MAX]),
            stem + NOT_IN_IDS.sub("_", second[:_STEM_CHARS_MAX]),
        )

    def wish(self, id_: str) -> str:
        """The id itself, or numbered where something has it."""
        return self._free(id_, id_)[0]

    def flow(self, source: str, target: str) -> str:
        """`charge--ship`: a flow is named by what it joins."""
        return self.wish(f"{source[:_STEM_CHARS_MAX]}--{target[:_STEM_CHARS_MAX]}")

    def _free(self, first: str, second: str) -> tuple[str, str]:
        number = self._repeats.get(first, 0)
        while True:
            number += 1
            suffix = f"-{number}" if number > 1 else ""
            pair = first + suffix, second + suffix
            if self._taken.isdisjoint(pair):
                self._repeats[first] = number
                self._taken.update(pair)
                return pair
