"""A topic as another process reads it: up to the durable mark, wherever the writer moves it."""

from holdfast.journal.local.disk import Disk
from holdfast.journal.local.index import Points, Summary
from holdfast.journal.local.mark import NOWHERE, Place
from holdfast.journal.local.names import Settings, segment_sequences
from holdfast.journal.local.recovery import load_sealed, open_earliest, open_mark
from holdfast.journal.local.segment import Segment
from holdfast.journal.local.view import TopicView


class TopicFollower:
    """Keeps a view fresh; it writes nothing and holds nobody up."""

    def __init__(self, disk: Disk, folder: str, topic: str, settings: Settings) -> None:
        self._disk = disk
        self._folder = folder
        self._mark = open_mark(disk, folder)
        self._earliest = open_earliest(disk, folder, settings.partitions)
        self._seen = NOWHERE
        self.view = TopicView(topic, settings.partitions, self._earliest.load())

    def refresh(self) -> None:
        """Takes up what the writer made durable and what it discarded since the last time."""
        durable = self._mark.load()  # before the offsets: what is removed later is found out later
        self._take_up_discards()
        if durable is not None and durable > self._seen:  # None: caught in the middle of a write
            self._follow(durable)
            self._seen = durable

    def close(self) -> None:
        self.view.close()
        self._mark.close()
        self._earliest.close()

    def _take_up_discards(self) -> None:
        for partition, offset in enumerate(self._earliest.load(), start=1):
            if offset > self.view.earliest[partition]:
                self.view.earliest[partition] = offset
                self.view.next[partition] = max(self.view.next[partition], offset)
        while self.view.oldest_is_discarded():
            self.view.drop_oldest()

    def _follow(self, durable: Place) -> None:
        for sequence in self._sequences_up_to(durable.sequence):
            is_last = sequence == durable.sequence
            try:
                self._take_up(sequence, durable.position if is_last else None)
            except FileNotFoundError:  # removed by the writer meanwhile, so nobody can ask for it
                self._take_up_discards()

    def _sequences_up_to(self, last: int) -> list[int]:
        if self.view.segments:
            return list(range(self.view.segments[-1].sequence, last + 1))
        found = segment_sequences(self._disk.list(self._folder))
        return [sequence for sequence in found if sequence <= last]

    def _take_up(self, sequence: int, end: int | None) -> None:
        """Makes a segment readable up to `end`; without one, up to its last frame."""
        segments = self.view.segments
        if not segments or segments[-1].sequence != sequence:
            summary = None if end is not None else load_sealed(self._disk, self._folder, sequence)
            if summary is not None:
                self.view.add_segment(Segment(self._disk, self._folder, summary))
                return
            segment = Segment(self._disk, self._folder, Summary(sequence), Points())
            segment.file.size_bytes()  # opened now: the view has only segments that are there
            self.view.add_segment(segment)
        last = segments[-1]
        if end is not None:
            headers = last.unread(end)
        else:  # not sealed yet: what stands behind its frames is left from the file's earlier use
            headers, _ = last.unread_at_most(last.file.size_bytes())
        self.view.add_frames(headers)
