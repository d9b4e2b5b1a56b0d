"""What a member may be called, wherever a name is given."""

import asyncio
from pathlib import Path

import pytest
from tests.cluster.simulated import SimulatedCluster, play

from holdfast.belonging import belong
from holdfast.cluster.joining import open_member
from holdfast.config import Config
from holdfast.errors import InvalidArgument, NotFound, Unavailable
from holdfast.member_names import check_member_name

GOOD = ["a", "A1", "m-1.example.org", "_x", "0123456789ab", "x" * 64]
BAD = ["", ".", ".hidden", "a b/c", "a/b", "a b", "ä", "x" * 65, "a\n", "a:1", "a,b"]
NOBODY = "etcd://127.0.0.1:1"  # no server listens there


@pytest.mark.parametrize("name", GOOD)
def test_letters_digits_dots_and_dashes_are_a_name(name: str) -> None:
    check_member_name(name)


@pytest.mark.parametrize("name", [each for each in BAD if each])
def test_a_start_with_a_wrong_name_makes_nothing(tmp_path: Path, name: str) -> None:
    config = Config(cluster=NOBODY, member=name)
    with pytest.raises(InvalidArgument, match="member \\(--member\\)") as caught:
        asyncio.run(open_member(tmp_path / "data", config))
    assert repr(name) in caught.value.message
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_has_such_a_name_already_keeps_it(tmp_path: Path) -> None:
    belong(tmp_path, "id of the cluster", "a b")
    with pytest.raises(Unavailable):  # etcd is asked
        asyncio.run(open_member(tmp_path, Config(cluster=NOBODY, member="a b")))


def test_what_is_done_with_a_member_asks_for_a_name() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        await cluster.start_all()
        api = cluster.gateway("a").cluster
        for name in BAD:
            for ask in (api.drain, api.remove, lambda member: api.move("1", member)):
                with pytest.raises(InvalidArgument, match="name of a member"):
                    await ask(name)
        with pytest.raises(NotFound, match="there are a, b, c"):
            await api.drain("d")

    play(story)
