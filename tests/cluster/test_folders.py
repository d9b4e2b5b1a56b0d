"""A folder is a node's or a member's, never first the one and then the other."""

import asyncio
from pathlib import Path

import pytest

from holdfast.belonging import belong, check_folder
from holdfast.errors import InvalidState
from holdfast.layout import divide
from holdfast.node import LocalNode


def test_a_nodes_folder_is_refused_by_a_cluster(tmp_path: Path) -> None:
    async def once() -> None:
        node = await LocalNode.open(tmp_path / "alone")
        await node.close()

    asyncio.run(once())
    with pytest.raises(InvalidState, match=r"alone has the log of a single node"):
        check_folder(tmp_path / "alone")
    divide(tmp_path / "several", 2, 4, 4)
    with pytest.raises(InvalidState, match=r"several has the log of a single node"):
        check_folder(tmp_path / "several")
    check_folder(tmp_path / "new")


def test_a_members_folder_is_refused_by_a_node_and_by_another_cluster(tmp_path: Path) -> None:
    belong(tmp_path, "cluster 1", "a")
    belong(tmp_path, "cluster 1", "a")
    check_folder(tmp_path)
    with pytest.raises(InvalidState, match="another cluster"):
        belong(tmp_path, "cluster 2", "a")
    with pytest.raises(InvalidState, match="that of member 'a'"):
        belong(tmp_path, "cluster 1", "b")
    with pytest.raises(InvalidState, match="member 'a' of a cluster; start it with --cluster"):
        asyncio.run(LocalNode.open(tmp_path))
