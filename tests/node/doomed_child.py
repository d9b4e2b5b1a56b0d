"""A node whose timer ends the process when it is due; says what became of it."""

import asyncio
import os
import signal
import sys
from pathlib import Path

from holdfast.config import Config
from holdfast.gateway.processes.shapes import NewProcessInstance, Resource
from holdfast.gateway.tasks.shapes import ActivationRequest, IncidentQuery
from holdfast.model.bpmn import write_bpmn
from holdfast.model.dsl import Process
from holdfast.model.feel import Expression
from holdfast.node import LocalNode

BOMB = '"bo" + "mb"'
DOOMED = Process("doomed").pause("wait", "PT0.2S").compute("boom", f"={BOMB}", result="x").task("a")
FINE = Process("fine").pause("wait", "PT0.2S").compute("well", "=1 + 1", result="x").task("a")


def arm() -> None:
    """From now on evaluating the bomb ends the process, as running out of memory would."""
    evaluate = Expression.evaluate

    def doomed(self: Expression, *args: object) -> object:
        if self.text == BOMB:
            os.kill(os.getpid(), signal.SIGKILL)
        return evaluate(self, *args)  # type: ignore[arg-type]

    Expression.evaluate = doomed  # type: ignore[method-assign, assignment]


async def main(folder: Path, armed: str) -> None:
    if armed == "armed":
        arm()
    is_new = not (folder / "journal").exists()
    node = await LocalNode.open(folder, Config(partitions=1))
    api = node.gateway
    if is_new:
        files = [
            Resource(f"{p.id}.bpmn", write_bpmn(p.definition()).decode()) for p in (DOOMED, FINE)
        ]
        await api.processes.deploy(files)
        await api.instances.start([NewProcessInstance("doomed"), NewProcessInstance("fine")])
    if armed != "armed":
        for incident in (await api.incidents.page(IncidentQuery())).items:
            await api.incidents.resolve(incident.incident_key, 1)
    jobs = await api.jobs.activate(ActivationRequest(["a"], wait_ms=5_000))
    print("jobs", [job.origin.process_id for job in jobs if job.origin])
    for incident in (await api.incidents.page(IncidentQuery())).items:
        print("incident", incident.reason.value, incident.process_id, incident.element_id)
    print("health", *(await api.node.health()).warnings)
    await node.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
