"""The generations of a target: read back, and removed when there are enough newer ones."""

from collections.abc import Generator

import msgspec

from holdfast.backup.manifest import BackupManifest, StoredFile
from holdfast.backup.taking import BackupProgress
from holdfast.backup.target import BackupTarget
from holdfast.errors import DataLoss, InvalidArgument


class Pruned(msgspec.Struct, frozen=True, rename="camel"):
    """What was removed."""

    generations: list[int]
    kept: list[int]
    pieces: int = 0
    size_bytes: int = 0
    # somebody makes a backup: pieces that nobody needs are removed by the next prune
    is_put_off: bool = False


def verify(
    target: BackupTarget, manifests: list[BackupManifest], progress: BackupProgress
) -> Generator[None, None, list[DataLoss]]:
    """Reads every piece of some generations once; what is damaged or missing."""
    checked: dict[str, DataLoss | None] = {}
    for manifest in manifests:
        progress.total_bytes += manifest.size_bytes
    for manifest in manifests:
        for file in manifest.files:
            left_bytes = file.size_bytes
            for piece in file.pieces:
                if piece not in checked:
                    checked[piece] = _problem(target, piece, file)
                    yield
                progress.done_bytes += min(manifest.piece_bytes, left_bytes)
                left_bytes -= manifest.piece_bytes
    return [problem for problem in checked.values() if problem is not None]


def _problem(target: BackupTarget, piece: str, file: StoredFile) -> DataLoss | None:
    try:
        target.piece(piece, file)
    except DataLoss as error:
        return error
    return None


def prune(
    target: BackupTarget, keep: int, source: str, now_ms: int, *, damaged: bool = False
) -> Pruned:
    """Keeps the newest generations; removes the others, and the pieces that none needs.

    A backup that is being made needs pieces that no manifest names yet, and some that belong to
    the removed generations. So a backup and a prune each leave a note in the target before they
    look for the other's: at least one of the two sees the other. Then a backup refuses, and a prune
    leaves the pieces to the next prune.
    """
    if keep < 1:
        raise InvalidArgument(f"Expected to keep at least 1 backup, but found {keep}", field="keep")
    target.check()
    with target.working("prune", source, now_ms):
        found = target.generations()
        usable = [each for each in found if each.manifest is not None]
        for each in found:
            if each.problem is not None and not (damaged and isinstance(each.problem, DataLoss)):
                raise each.problem
        kept = usable[-keep:]
        gone = [each for each in found if each not in kept]
        for each in gone:
            target.forget(each)
        numbers = [each.number for each in gone], [each.number for each in kept]
        pieces = target.pieces()
        if any(other.what == "backup" for _, other in target.workers()):
            return Pruned(*numbers, is_put_off=True)
        needed = {
            piece
            for each in kept
            if each.manifest is not None
            for file in each.manifest.files
            for piece in file.pieces
        }
        unneeded = [piece for piece in pieces if piece not in needed]
        for piece in unneeded:
            target.drop(piece)
        return Pruned(*numbers, len(unneeded), sum(pieces[each] for each in unneeded))
