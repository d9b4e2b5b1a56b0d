"""The main job, small."""

from .shell import Shell


def test_the_demo_loses_and_doubles_nothing_although_a_worker_is_killed(shell: Shell) -> None:
    done = shell.run_process("demo", "--tasks", "1000", "--folder", "kept", "--json")
    assert done.code == 0, done.err
    verdict = done.json
    assert (verdict["lost"], verdict["doubled"], verdict["faults"]) == (0, 0, [])
    assert verdict["created"] == verdict["completed"] == verdict["effects"] == 1000
    assert verdict["submitted"] == 1000 + verdict["duplicatesRefused"]
    assert verdict["duplicatesRefused"] == 334 // 25
    assert verdict["incidentsRaised"] == verdict["incidentsResolved"] == 7
    assert verdict["takenOverAfterKill"] > 0

    orders = verdict["orders"]
    assert (orders["lost"], orders["doubled"], orders["faults"]) == (0, 0, [])
    assert orders["started"] == orders["completed"] == 1000 // 20
    assert orders["paid"] == orders["payments"] == 45
    assert orders["declined"] == 5
    assert orders["incidentsRaised"] == orders["incidentsResolved"] == 7
    assert orders["effects"] == 2 * 45
    assert (shell.folder / orders["picture"]).read_bytes().startswith(b"\x89PNG")

    assert shell.run("journal", "verify", "kept/data").code == 0
    again = shell.run_process("demo", "--tasks", "1000", "--folder", "kept")
    assert again.code == 5
