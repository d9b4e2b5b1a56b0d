"""Questions to one partition: a query is a struct, its answer is plain data.

A query is answered by a pure function over the state of its partition, wherever that is. A domain
lists its functions in `queries.py`; their type hints say what goes in and out.
"""

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar, get_type_hints

import msgspec

A = TypeVar("A", covariant=True)


class Query(msgspec.Struct, Generic[A], frozen=True, gc=False, array_like=True):
    """A question; `A` is what its answer is."""

    # Whether the answer tells only what is durable. One that may be a moment ahead of the disk
    # waits for nobody.
    is_settled: ClassVar[bool] = True
    # Whether the answer must be of the partition's owner as of now. In a cluster that costs a round
    # trip to a quorum; one that may be of a former owner, who does not know yet, costs nothing.
    is_fresh: ClassVar[bool] = True


class Question(NamedTuple):
    """How one kind of query is answered, and how it travels."""

    name: str
    query: type[Query[Any]]
    answer: Any  # the type of the answer
    function: Callable[[Any, Any], Any]


def questions(*functions: Callable[[Any, Any], Any]) -> tuple[Question, ...]:
    """What functions `(reader, query) -> answer` answer."""
    found: list[Question] = []
    for function in functions:
        hints = get_type_hints(function)
        query, answer = hints["query"], hints["return"]
        found.append(Question(query.__name__, query, answer, function))
    return tuple(found)


class Questions:
    """The questions of all domains, by the type of the query and by its name."""

    def __init__(self, domains: Iterable[tuple[Question, ...]]) -> None:
        self.all = tuple(question for domain in domains for question in domain)
        self.functions = {each.query: each.function for each in self.all}
        self.by_name = {each.name: each for each in self.all}
        assert len(self.by_name) == len(self.all), "two queries have one name"

    def answer(self, reader: Any, query: Query[A]) -> A:
        """What a partition says to a query."""
        return self.functions[type(query)](reader, query)
