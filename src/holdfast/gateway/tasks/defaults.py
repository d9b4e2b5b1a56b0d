"""What workers say about their tasks: kept by the node, for submissions that do not say it."""

import asyncio
from collections.abc import Mapping, Set

from holdfast.engine.jobs.queries import FindTaskDefaults
from holdfast.engine.jobs.values import JobIntent, TaskDefaults, TaskDefined
from holdfast.engine.kernel import Command
from holdfast.errors import Code, InvalidArgument
from holdfast.gateway import checks
from holdfast.gateway.access.asking import Asked
from holdfast.gateway.tasks.new_jobs import task_defaults
from holdfast.gateway.tasks.shapes import TaskOptions
from holdfast.partitions import EffectTopic
from holdfast.records import ValueType, partition_for
from holdfast.records.keys import NO_KEY

TYPES_KNOWN_MAX = 4_096  # types of tasks whose options are at hand: 1 MB


class DefaultsOfTasks:
    """The options of each type of tasks, on the partition that its name hashes to."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._known: dict[str, TaskDefaults | None] = {}  # what every submission would ask for
        asked.follow(EffectTopic(TaskDefined), self._changed)

    def _changed(self, effect: TaskDefined | None) -> None:
        if effect is None:  # nobody knows which
            self._known.clear()
        else:
            self._known.pop(effect.type, None)

    async def learn(self, types: Set[str]) -> None:
        """Asks for those that are not known; `of` tells them until the next await."""
        for type_ in types - self._known.keys():
            checks.name(type_, "type")
            found = await self._stored(type_)
            if len(self._known) >= TYPES_KNOWN_MAX:
                self._known.clear()
            self._known[type_] = found

    def of(self, type_: str) -> TaskDefaults | None:
        """What the last worker that said something about a type said."""
        return self._known.get(type_)

    async def _stored(self, type_: str) -> TaskDefaults | None:
        partition = partition_for(type_, self._asked.count)
        return await self._asked.ask(partition, FindTaskDefaults(type_))

    async def define(self, types: tuple[str, ...], options: Mapping[str, TaskOptions]) -> None:
        """Remembers what is new of what a worker says about its types."""
        new = [task_defaults(type_, each) for type_, each in options.items()]
        for each in new:
            if each.type not in types:
                raise InvalidArgument(
                    f"Expected options of types that are asked for, but found {each.type!r}",
                    field="options",
                )
        changed = [
            each
            for each in new
            if (await self._stored(each.type) or TaskDefaults(each.type)) != each
        ]
        commands: dict[int, list[Command]] = {}
        for each in changed:
            partition = partition_for(each.type, self._asked.count)
            command = Command(ValueType.JOB, JobIntent.DEFINE_TASK, NO_KEY, each)
            commands.setdefault(partition, []).append(command)
        tickets = self._asked.submit_all(commands) if commands else ()
        for replies in await asyncio.gather(*tickets):
            for reply in replies:
                error = reply.error()
                if error is not None and error.code != Code.ALREADY_EXISTS:  # another worker's
                    raise error
