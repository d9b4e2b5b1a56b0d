# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
"""Submits two-step workflows to DBOS and sees them completed: submitter.py DSN COUNT BATCH_SIZE."""

import sys
import time

import sqlalchemy as sa
from dbos import DBOSClient

OPTIONS = {"workflow_name": "two_step", "queue_name": "bench"}
IN_FLIGHT = sa.text(
    "SELECT EXISTS (SELECT FROM dbos.workflow_status WHERE status IN ('ENQUEUED', 'PENDING'))"
)
STEPS = sa.text("SELECT count(*) FROM dbos.operation_outputs WHERE output IS NOT NULL")


def main(dsn: str, count: int, batch_size: int) -> None:
    engine = sa.create_engine(dsn.replace("postgresql:", "postgresql+psycopg:"))
    client = DBOSClient(system_database_engine=engine)
    client.check_connection()
    print("ready", flush=True)
    sys.stdin.readline()
    for begin in range(0, count, batch_size):
        with engine.begin() as transaction:
            for number in range(begin, min(begin + batch_size, count)):
                client.enqueue_in_transaction(transaction, OPTIONS, number)
    print("submitted", flush=True)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        while connection.execute(IN_FLIGHT).scalar():
            time.sleep(0.01)
        print("done", flush=True)
        steps = connection.execute(STEPS).scalar()
    verify(client, count, steps)
    print("verified", flush=True)


def verify(client: DBOSClient, count: int, steps: object) -> None:
    """Every instance succeeded once with its own result, and both its steps are recorded."""
    flows = client.list_workflows(name=OPTIONS["workflow_name"], status="SUCCESS")
    found = sorted((flow.output["reserved"], flow.output["charged"]) for flow in flows)
    if found != [(number, number) for number in range(count)]:
        sys.exit(f"expected the results of {count} workflows, found {len(found)}: {found[:3]}...")
    if steps != 2 * count:
        sys.exit(f"expected {2 * count} recorded steps, found {steps}")


main(sys.argv[1], *map(int, sys.argv[2:4]))
