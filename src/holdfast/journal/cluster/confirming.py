"""Asking a quorum whether this member still owns what it answers for, once a turn for all."""

import asyncio

from holdfast.errors import HoldfastError
from holdfast.journal.cluster.messages import Confirm, Confirmed
from holdfast.journal.cluster.ports import Peers
from holdfast.journal.cluster.receiving import Receiving
from holdfast.journal.cluster.sending import OwnedRange, OwnerSending
from holdfast.sequence.api import Replica


class _Question:
    """Whether one range still holds, and who has answered."""

    def __init__(self, owned: OwnedRange) -> None:
        self.owned = owned
        self.promises: dict[Replica, int] = {}
        self.answers: list[asyncio.Future[bool]] = []

    def settle(self, is_last: bool) -> bool:
        """Answers if it is known, or nobody else is to be heard; whether it is answered."""
        is_confirmed = self.owned.rules.is_confirmed(self.promises)
        if is_confirmed or is_last:
            for answer in self.answers:
                if not answer.done():
                    answer.set_result(is_confirmed)
            return True
        return False


class Confirming:
    """Collects what is asked in a turn of the loop, and asks each replica once."""

    def __init__(self, sending: OwnerSending, receiving: Receiving, peers: Peers) -> None:
        self._sending = sending
        self._receiving = receiving
        self._peers = peers
        self._questions: dict[int, _Question] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def confirm(self, partition: int) -> asyncio.Future[bool]:
        """Whether nobody had taken a partition over when this was asked."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[bool] = loop.create_future()
        owned = self._sending.owned.get(partition)
        if owned is None or owned.rules.is_fenced:
            answer.set_result(False)
            return answer
        if not self._questions:
            loop.call_soon(self._ask)
        question = self._questions.get(partition)
        if question is None or question.owned is not owned:
            question = self._questions[partition] = _Question(owned)
        question.answers.append(answer)
        return answer

    async def close(self) -> None:
        """Asks nothing any more."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _ask(self) -> None:
        questions, self._questions = self._questions, {}
        by_replica: dict[Replica, list[_Question]] = {}
        for partition, question in questions.items():
            for replica in question.owned.opened.replicas:
                if replica == self._receiving.replica:
                    question.promises[replica] = self._receiving.rules(partition).promise
                else:
                    by_replica.setdefault(replica, []).append(question)
        left = {question.owned.partition: 0 for question in questions.values()}
        for several in by_replica.values():
            for question in several:
                left[question.owned.partition] += 1
        for question in questions.values():
            question.settle(is_last=not left[question.owned.partition])
        for replica, several in by_replica.items():
            task = asyncio.get_running_loop().create_task(self._call(replica, several, left))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _call(
        self, replica: Replica, questions: list[_Question], left: dict[int, int]
    ) -> None:
        ranges = [(each.owned.partition, each.owned.epoch) for each in questions]
        promises: list[int] = []
        try:
            answer = await self._peers.call(replica.member, Confirm(replica.disk, ranges))
            if isinstance(answer, Confirmed):
                promises = answer.promises
        except HoldfastError:
            pass  # it does not count
        for question, promise in zip(questions, promises, strict=False):
            question.promises[replica] = promise
            self._sending.fenced(question.owned.partition, promise)
        for question in questions:
            left[question.owned.partition] -= 1
            question.settle(is_last=not left[question.owned.partition])
