"""Paths of content: what they may be, and their order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.content.paths import (
    checked_path,
    child_key,
    is_below,
    key_of,
    keys_from,
    parents,
    path_of,
)
from holdfast.errors import InvalidArgument

NAMES = st.text(st.sampled_from("ab.-/ !0~éß😀"), min_size=1, max_size=4)


@st.composite
def paths(draw: st.DrawFn) -> str:
    found = draw(st.lists(NAMES.filter(lambda name: "/" not in name and name not in (".", ".."))))
    return "/" + "/".join(found)


@pytest.mark.parametrize(
    "path",
    ["/", "/a", "/a/b", "/.a", "/a.", "/...", "/a b/ c ", "/é", "/😀", "/a\\b", "/" + "x" * 255,
     "/" + "é" * 127, "/x" * 100, "/C:", "/a~1", "/-rf", "/a:b"],
)  # fmt: skip
def test_a_path_is_itself(path: str) -> None:
    assert checked_path(path) == path


@pytest.mark.parametrize(
    ("path", "wrong"),
    [
        ("", "begin with a slash"), ("a", "begin with a slash"), ("./a", "begin with a slash"),
        ("/a/", "part ''"), ("//", "part ''"), ("/a//b", "part ''"),
        ("/.", "part '.'"), ("/..", "part '..'"), ("/a/../b", "part '..'"), ("/../a", "part '..'"),
        ("/a\x00", "control"), ("/a\nb", "control"), ("/a\n", "control"), ("/a\x7f", "control"),
        ("/a\x85", "control"), ("/\ud800", "control"),
        ("/e\u0301", "normal form C"), ("/\u212b", "normal form C"),
        ("/" + "x" * 256, "more than 255"), ("/" + "é" * 128, "more than 255"),
        ("/" + "x" * 2_048, "more than 2048"), ("/x" * 101, "more than 100 parts"),
    ],
)  # fmt: skip
def test_what_is_no_path_is_refused_with_the_reason(path: str, wrong: str) -> None:
    with pytest.raises(InvalidArgument, match=wrong) as caught:
        checked_path(path)
    assert len(caught.value.message) < 2_000


def test_what_is_above_and_below() -> None:
    assert parents("/") == parents("/a") == []
    assert parents("/a/b/c") == ["/a", "/a/b"]
    assert is_below("/a/b", "/a") and is_below("/a", "/") and is_below("/a/b/c", "/a")
    assert not is_below("/a", "/a") and not is_below("/", "/") and not is_below("/ab", "/a")
    assert not is_below("/a", "/a/b")


@given(paths(), paths())
def test_a_subtree_is_one_range_of_keys(path: str, top: str) -> None:
    first, end = keys_from(top)
    assert (first <= key_of(path) < end) == (path == top or is_below(path, top))
    assert (first.encode() <= key_of(path).encode() < end.encode()) == (first <= key_of(path) < end)
    assert path_of(key_of(path)) == path
    for parent in parents(path):
        assert key_of(parent) < key_of(path)
    if is_below(path, top):
        child = path_of(child_key(key_of(path), key_of(top)))
        assert child == path or is_below(path, child)
        assert is_below(child, top) and [*parents(child)][-1:] == ([] if top == "/" else [top])
