# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
# pyright: reportCallIssue=false, reportImplicitRelativeImport=false
"""The application that both sides of the race name their no-op in."""

from celery import Celery


def made(port: int) -> Celery:
    """No results are kept, and a task that a worker loses is done again, as with the others."""
    app = Celery("race", broker=f"redis://127.0.0.1:{port}/0")
    app.conf.update(
        task_ignore_result=True,
        task_acks_late=True,
        task_store_errors_even_if_ignored=False,
        worker_prefetch_multiplier=64,
        worker_send_task_events=False,
        worker_redirect_stdouts=False,
        broker_pool_limit=16,
        broker_connection_retry_on_startup=True,
    )
    return app
