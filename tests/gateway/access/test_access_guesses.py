"""Guessing passwords gets slower with each wrong one, and keeps out nobody else."""

import asyncio
from dataclasses import dataclass
from typing import Any, cast

import pytest
from tests.gateway.access.access_node import basic, bearer, guarded
from tests.gateway.fake_api import Reply, ask

from holdfast.config import Config
from holdfast.engine.identity.queries import FindPassword
from holdfast.errors import Unauthorized
from holdfast.gateway.access import guesses as module
from holdfast.gateway.access.authentication import Authentication
from holdfast.gateway.access.guesses import Guesses, TooManyGuesses
from holdfast.gateway.access.passwords import kept_password
from holdfast.gateway.identity.shapes import NewUser, UserChange
from holdfast.limits import (
    GUESS_FORGOTTEN_MS,
    GUESS_PAUSE_MS,
    GUESS_PAUSE_MS_MAX,
    GUESSES_OF_ADDRESS_FREE,
    GUESSES_OF_USER_FREE,
)

ME = "/v2/authentication/me"
DAY_S = 86_400


@dataclass
class Hands:
    """A clock that a test turns."""

    seconds: float = 1_000.0

    def now_ms(self) -> int:
        return int(self.seconds * 1_000)

    def monotonic(self) -> float:
        return self.seconds

    def busy(self) -> float:
        return 0.0


def wait_of(guesses: Guesses, username: str, address: str = "10.0.0.1") -> int:
    """How long a guess has to wait, in ms; 0: it was made."""
    try:
        guesses.begin(username, address)
    except TooManyGuesses as error:
        return error.retry_after_ms
    return 0


def test_the_pause_doubles_up_to_its_bound() -> None:
    hands = Hands()
    guesses = Guesses(hands)
    for _ in range(GUESSES_OF_USER_FREE):
        assert wait_of(guesses, "ann") == 0
    pauses: list[int] = []
    for _ in range(12):
        assert wait_of(guesses, "ann") == 0
        pauses.append(wait_of(guesses, "ann") - 1)
        hands.seconds += pauses[-1] / 1_000 + 0.01
    assert pauses[:4] == [GUESS_PAUSE_MS * factor for factor in (1, 2, 4, 8)]
    assert pauses[-1] == GUESS_PAUSE_MS_MAX


def test_a_day_of_guessing_is_a_few_hundred_guesses() -> None:
    hands = Hands()
    guesses, made = Guesses(hands), 0
    end = hands.seconds + DAY_S
    while hands.seconds < end:
        wait_ms = wait_of(guesses, "ann", f"10.0.{made % 250}.1")  # from many addresses
        made += not wait_ms
        hands.seconds += wait_ms / 1_000 if wait_ms else 0.001
    assert made < 320


def test_one_address_is_slowed_whatever_names_it_tries() -> None:
    guesses = Guesses(Hands())
    for index in range(GUESSES_OF_ADDRESS_FREE + 1):
        assert wait_of(guesses, f"user {index}") == 0
    assert wait_of(guesses, "another") > 0
    assert wait_of(guesses, "another", "10.0.0.2") == 0
    for index in range(5 * GUESSES_OF_ADDRESS_FREE):
        assert wait_of(guesses, f"user of a proxy {index}", "127.0.0.1") == 0


def test_an_address_of_ipv6_is_its_network() -> None:
    guesses = Guesses(Hands())
    for index in range(GUESSES_OF_ADDRESS_FREE + 1):
        assert wait_of(guesses, f"user {index}", f"2001:db8::{index + 1:x}") == 0
    assert wait_of(guesses, "another", "2001:db8::ffff") > 0
    assert wait_of(guesses, "another", "2001:db8:0:1::1") == 0


def test_waiting_is_no_further_guess_and_time_forgets() -> None:
    hands = Hands()
    guesses = Guesses(hands)
    while not (wait_ms := wait_of(guesses, "ann")):
        pass
    assert [wait_of(guesses, "ann") for _ in range(100)] == [wait_ms] * 100
    hands.seconds += GUESS_FORGOTTEN_MS / 1_000 + 1
    for _ in range(GUESSES_OF_USER_FREE):
        assert wait_of(guesses, "ann") == 0


def test_a_right_one_frees_the_name_and_not_the_address() -> None:
    guesses = Guesses(Hands())
    for _ in range(GUESSES_OF_USER_FREE):
        guesses.begin("ann", "10.0.0.1")
    guesses.right("ann", "10.0.0.1")
    for index in range(GUESSES_OF_ADDRESS_FREE - GUESSES_OF_USER_FREE + 2):
        assert wait_of(guesses, f"user {index}") == 0
    assert wait_of(guesses, "ann") > 0
    assert wait_of(guesses, "ann", "10.0.0.2") == 0


def test_what_is_kept_of_guesses_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "GUESSERS_KEPT_MAX", 100)
    guesses = Guesses(Hands())
    for index in range(1_000):
        guesses.begin("x" * 10_000 + str(index), f"10.0.{index // 250}.{index % 250}")
    assert len(guesses._guessers) <= 100
    assert all(len(key) == 16 for key in guesses._guessers)


def test_guessing_keeps_out_neither_others_nor_tokens_nor_who_was_right_before() -> None:
    async def run() -> None:
        async with guarded(basic_authentication=True) as there:
            identity = there.admin.identity
            for name in ("ann", "ben"):
                await identity.create_user(NewUser(name, password="correct horse"))

            async def me(headers: dict[str, str]) -> Reply:
                return await ask(there.url, "GET", ME, headers=headers)

            ann, ben = basic("ann", "correct horse"), basic("ben", "correct horse")
            assert (await me(ann)).status == 200
            tries = [me(basic("ann", f"guess {index}")) for index in range(40)]
            replies = await asyncio.gather(*tries)
            found = [each.status for each in replies]
            assert found.count(401) <= GUESSES_OF_USER_FREE + 1, "at once is not one guess more"
            assert set(found) == {401, 429}
            late = next(each for each in replies if each.status == 429)
            assert late.json()["code"] == "RESOURCE_EXHAUSTED"
            assert 1 <= int(late.headers["retry-after"]) <= 2
            assert late.json()["retryAfterMs"] > 0
            assert (await me(ann)).status == 200, "she was right before"
            assert (await me(ben)).status == 200, "he is another"
            assert (await me(bearer(there.admin_token))).status == 200
            await identity.update_user("ann", UserChange(password="other"))
            assert (await me(ann)).status in (401, 429), "what was right is wrong now"

    asyncio.run(run())


def test_who_was_right_is_checked_again_and_not_kept_waiting() -> None:
    hands, kept = Hands(), kept_password("correct horse")

    class Known:
        async def ask_any(self, query: FindPassword) -> bytes:
            return kept if query.username == "ann" else b""

    door = Authentication(Config(basic_authentication=True), hands, cast(Any, Known()))

    async def enter(password: str) -> str:
        header = basic("ann", password)["Authorization"].encode()
        return (await door.asker(header, "10.0.0.1")).sub

    async def run() -> None:
        assert await enter("correct horse") == "ann"
        for index in range(GUESSES_OF_USER_FREE + 1):
            with pytest.raises(Unauthorized):
                await enter(f"guess {index}")
        with pytest.raises(TooManyGuesses):
            await enter("another guess")
        hands.seconds += 0.5  # the name has to wait for another half second
        assert await enter("correct horse") == "ann", "believed"
        with pytest.raises(TooManyGuesses):
            await enter("another guess")
        for _ in range(8):  # longer and longer
            hands.seconds = door._guesses._guessers[next(iter(door._guesses._guessers))].until
            with pytest.raises(Unauthorized):
                await enter("another guess")
        hands.seconds += 61.0  # the pause is longer than a right password is believed
        with pytest.raises(TooManyGuesses):
            await enter("another guess")
        assert await enter("correct horse") == "ann", "checked, and not kept waiting"

    asyncio.run(run())


def test_many_requests_of_one_client_at_once_are_one_guess() -> None:
    async def run() -> None:
        async with guarded(basic_authentication=True) as there:
            await there.admin.identity.create_user(NewUser("ann", password="correct horse"))
            asked = [
                ask(there.url, "GET", ME, headers=basic("ann", "correct horse")) for _ in range(30)
            ]
            assert [each.status for each in await asyncio.gather(*asked)] == [200] * 30

    asyncio.run(run())


def test_names_that_nobody_has_are_slowed_like_others() -> None:
    async def run() -> None:
        async with guarded(basic_authentication=True) as there:
            asked = [
                ask(there.url, "GET", ME, headers=basic("nobody", f"{each}")) for each in range(20)
            ]
            found = [each.status for each in await asyncio.gather(*asked)]
            assert found.count(401) == GUESSES_OF_USER_FREE + 1
            assert found.count(429) == 20 - GUESSES_OF_USER_FREE - 1

    asyncio.run(run())
