"""Content distribution lives with one partition: where that is open, the topics are."""

from holdfast.content.publisher import ContentService
from holdfast.content.publisher.retention import EVERYTHING, ContentNeeds
from holdfast.engine.kernel.runner import Runner
from holdfast.engine.state import EngineState
from holdfast.errors import HoldfastError
from holdfast.gateway.content.home import ContentHome
from holdfast.logs import log
from holdfast.partition_life import PartitionLife


class ContentLife(PartitionLife):
    """Starts and stops the service, one after the other, as its partition comes and goes."""

    def __init__(self, service: ContentService, runner: Runner[EngineState]) -> None:
        super().__init__("content", service, runner)
        self._service = service

    async def needs(self, home: ContentHome) -> ContentNeeds:
        """What of the topics must not be dropped here; the member that has them tells."""
        if not self._service.is_used:
            return ContentNeeds({}, {})
        try:
            return await home.needs()
        except HoldfastError as error:
            log.info("content: not known what is needed", error=error.message)
            return EVERYTHING
