"""What workers say about their tasks: kept by the node, for submissions that do not say it."""

from collections.abc import Mapping

from holdfast.engine.jobs.values import JobIntent, TaskDefaults
from holdfast.engine.kernel import Command
from holdfast.errors import Code, InvalidArgument
from holdfast.gateway import checks
from holdfast.gateway.access.asking import Asked
from holdfast.gateway.tasks.shapes import TaskOptions
from holdfast.records import ValueType, partition_for
from holdfast.records.keys import NO_KEY

TYPES_KNOWN_MAX = 4_096  # types of tasks whose options are at hand: 1 MB


class DefaultsOfTasks:
    """The options of each type of tasks, on the partition that its name hashes to."""

    def __init__(self, runner: Asked) -> None:
        self._runner = runner
        self._partitions = len(runner.processors)
        self._known: dict[str, TaskDefaults | None] = {}  # what every submission would look up

    def of(self, type_: str) -> TaskDefaults | None:
        """What the last worker that said something about a type said."""
        try:
            return self._known[type_]
        except KeyError:
            if len(self._known) >= TYPES_KNOWN_MAX:
                self._known.clear()
            found = self._known[type_] = self._stored(type_)
            return found

    def _stored(self, type_: str) -> TaskDefaults | None:
        partition = partition_for(type_, self._partitions)
        return self._runner.processors[partition].view.jobs.defaults.get(type_)

    async def define(self, types: tuple[str, ...], options: Mapping[str, TaskOptions]) -> None:
        """Remembers what is new of what a worker says about its types."""
        new = [checks.task_defaults(type_, each) for type_, each in options.items()]
        for each in new:
            if each.type not in types:
                raise InvalidArgument(
                    f"Expected options of types that are asked for, but found {each.type!r}",
                    field="options",
                )
        changed = [
            each for each in new if (self._stored(each.type) or TaskDefaults(each.type)) != each
        ]
        commands: dict[int, list[Command]] = {}
        for each in changed:
            partition = partition_for(each.type, self._partitions)
            command = Command(ValueType.JOB, JobIntent.DEFINE_TASK, NO_KEY, each)
            commands.setdefault(partition, []).append(command)
        try:
            for ticket in self._runner.submit_all(commands) if commands else ():
                for reply in await ticket:
                    error = reply.error()
                    if error is not None and error.code != Code.ALREADY_EXISTS:  # another worker's
                        raise error
        finally:
            for each in changed:
                self._known.pop(each.type, None)
