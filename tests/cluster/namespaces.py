"""Members in network namespaces of their own, between which one direction can be cut.

A cut is a blackhole route: what one member sends to the other vanishes, acknowledgements of TCP
too, and what the other one sends still arrives.
"""

import contextlib
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from bench.ours.cluster import OurCluster, OurMember
from bench.peers.etcd import EtcdServer

_NET = "10.213.7"
_ROUTER = f"{_NET}.254"  # this machine, with etcd


class Namespaces:
    """A bridge of this machine, and a namespace for each member behind it."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = list(names)
        self._bridge = f"hf{os.getpid()}"

    def address(self, name: str) -> str:
        return f"{_NET}.{self._names.index(name) + 1}"

    def within(self, name: str) -> list[str]:
        """The beginning of a command that runs there."""
        return ["ip", "netns", "exec", self._space(name)]

    def _space(self, name: str) -> str:
        return f"{self._bridge}-{name}"

    def make(self) -> None:
        _ip("link", "add", self._bridge, "type", "bridge")
        _ip("addr", "add", f"{_ROUTER}/24", "dev", self._bridge)
        _ip("link", "set", self._bridge, "up")
        for name in self._names:
            space, device = self._space(name), f"{self._bridge}{name}"
            _ip("netns", "add", space)
            _ip("link", "add", device, "type", "veth", "peer", "name", "eth0", "netns", space)
            _ip("link", "set", device, "master", self._bridge, "up")
            _ip("-n", space, "addr", "add", f"{self.address(name)}/24", "dev", "eth0")
            _ip("-n", space, "link", "set", "eth0", "up")
            _ip("-n", space, "link", "set", "lo", "up")

    def remove(self) -> None:
        for name in self._names:
            with contextlib.suppress(subprocess.CalledProcessError):
                _ip("netns", "del", self._space(name))
        with contextlib.suppress(subprocess.CalledProcessError):
            _ip("link", "del", self._bridge)

    @contextlib.contextmanager
    def cut(self, one: str, other: str) -> Iterator[None]:
        """Nothing that one sends reaches the other meanwhile."""
        route = ("blackhole", f"{self.address(other)}/32")
        _ip("-n", self._space(one), "route", "add", *route)
        try:
            yield
        finally:
            _ip("-n", self._space(one), "route", "del", *route)


@contextlib.contextmanager
def namespaces(names: Sequence[str]) -> Iterator[Namespaces]:
    """Namespaces; the test is skipped, with the reason, where they cannot be made."""
    net = Namespaces(names)
    try:
        try:
            net.make()
        except (OSError, subprocess.CalledProcessError) as error:
            why = error.stderr.decode() if isinstance(error, subprocess.CalledProcessError) else ""
            pytest.skip(f"no network namespaces can be made here: {error} {why}")
        yield net
    finally:
        net.remove()


class NamespacedCluster(OurCluster):
    """A cluster whose members are in namespaces; etcd and clients are outside."""

    def __init__(
        self, folder: Path, net: Namespaces, environment: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(folder, environment=environment)
        self.etcd = EtcdServer(durable=True, host=_ROUTER)
        self._net = net

    def member(self, name: str) -> OurMember:
        return OurMember(
            name, self._folder, self.etcd.url, ["--allow-remote-without-authorization"],
            host=self._net.address(name), within=self._net.within(name),
            environment=self._environment,
        )  # fmt: skip


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)
