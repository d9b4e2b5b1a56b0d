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

    assert shell.run("journal", "verify", "kept/data").code == 0
    again = shell.run_process("demo", "--tasks", "1000", "--folder", "kept")
    assert again.code == 5
