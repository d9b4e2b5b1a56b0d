"""A session holds wherever a request goes: on every process of a node and every member."""

import asyncio
from pathlib import Path

import httpx
import pytest
from tests.brokered.in_process import Members
from tests.cli.shell import Shell

from holdfast.errors import Unauthorized

from .conftest import SeenPage


def test_a_session_holds_on_every_process_of_a_node(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    try:
        url = shell.start_node("--processes", "2", "--authorization").started["url"]
        token = (tmp_path / "data" / "admin-token").read_text().strip()
        cookies = httpx.Cookies()

        def ask(method: str, path: str, **fields: str) -> SeenPage:
            with httpx.Client(base_url=url, cookies=cookies, timeout=30) as browser:
                sent = browser.request(method, path, data=fields or None)  # a new connection
                cookies.update(browser.cookies)
                return SeenPage(sent)

        form = ask("GET", "/console/sign-in")
        assert ask("POST", "/console/sign-in", csrf=form.csrf, token=token).status == 303
        pages = [ask("GET", "/console") for _ in range(8)]  # the system chooses a process
        assert {each.status for each in pages} == {200}
        assert ask("POST", "/console/sign-out", csrf=pages[-1].csrf).status == 303
        assert {ask("GET", "/console").status for _ in range(8)} == {303}
    finally:
        shell.close()


def test_a_session_holds_on_every_member_and_ends_on_all_of_them(tmp_path: Path) -> None:
    async def story() -> None:
        members = Members(tmp_path, authorization=True)
        try:
            await members.start("a", "b")
            sessions = [each.node.gateway.sessions for each in members.members.values()]
            first, second = sessions
            assert first is not None and second is not None
            kept: list[str] = []
            assert await members.members["a"].node.gateway.let_first_in(kept.append)
            for here, there in ((first, second), (second, first)):
                opened = await here.by_token(kept[0], "127.0.0.1")
                assert (await there.asker(opened.secret)).sub == "admin"
                await there.end(opened.secret)
                with pytest.raises(Unauthorized, match="signed out"):
                    await here.asker(opened.secret)
        finally:
            await members.close()

    asyncio.run(story())
