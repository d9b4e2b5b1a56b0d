"""What a rule finds: the element, and what was expected of it."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from holdfast.model.graph import Graph


class Problem(NamedTuple):
    """One thing that is wrong with a definition."""

    element: str  # the id of the element or flow; of the process where no single one is to blame
    message: str  # "Expected ..., but ...", naming the element


Rule = Callable[[Graph], Iterator[Problem]]
