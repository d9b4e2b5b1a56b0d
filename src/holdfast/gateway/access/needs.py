"""What each endpoint needs: one row for every one there is, and a test that no row is missing.

It is what somebody must be permitted with at least one resource, to be let in at all. With which
one exactly is decided where the resource is known: commands by the partition that does them, by the
needs in the tables of their domains, and readers see only what they may.
"""

from enum import Enum

from holdfast.engine.identity.values import Permission, ResourceType

_R, _P = ResourceType, Permission


class Everyone(Enum):
    """Endpoints that need no permission."""

    ANYBODY = "anybody"  # without saying who they are
    KNOWN = "known"  # whoever says who they are


Alternatives = tuple[tuple[ResourceType, Permission], ...]
"""Permissions of which one is enough."""


def _one(resource: ResourceType, permission: Permission) -> Alternatives:
    return ((resource, permission),)


def _process(permission: Permission) -> Alternatives:
    return _one(_R.PROCESS_DEFINITION, permission)


_READ_INSTANCE = _process(_P.READ_PROCESS_INSTANCE)
_UPDATE_INSTANCE = _process(_P.UPDATE_PROCESS_INSTANCE)
_WORK = _one(_R.TASK, _P.WORK)
# Some are about tasks as well as about the jobs of processes.
_READ_JOB = (*_one(_R.TASK, _P.READ), *_READ_INSTANCE)
_UPDATE_JOB = (*_one(_R.TASK, _P.UPDATE), *_UPDATE_INSTANCE)


def _batch(*types: str) -> Alternatives:
    """The permission for all types of batch operations, or that for any one of some."""
    some = [each for each in _P if each.startswith("CREATE_BATCH_OPERATION_")]
    wanted = [f"CREATE_BATCH_OPERATION_{type_}" for type_ in types]
    chosen = [each for each in some if not types or each in wanted]
    return ((_R.BATCH, _P.CREATE), *((_R.BATCH, each) for each in chosen))


NEEDS: dict[str, Alternatives | Everyone] = {
    # tasks and jobs
    "submit_task": _one(_R.TASK, _P.CREATE),
    "submit_tasks": _one(_R.TASK, _P.CREATE),
    "get_task": _READ_JOB,
    "search_tasks": _READ_JOB,
    "get_results": _READ_JOB,
    "cancel_task": _one(_R.TASK, _P.UPDATE),
    "lease_jobs": _WORK,
    "activate_jobs": _WORK,
    "complete_jobs": _WORK,
    "complete_job": _WORK,
    "fail_jobs": _WORK,
    "fail_job": _WORK,
    "throw_errors": _WORK,
    "throw_job_error": _WORK,
    "release_jobs": _WORK,
    "extend_leases": _WORK,
    "update_job": _UPDATE_JOB,
    "update_job_retries": _UPDATE_JOB,
    "search_jobs": _READ_JOB,
    # incidents
    "list_incidents": _READ_JOB,
    "search_incidents": _READ_JOB,
    "search_instance_incidents": _READ_INSTANCE,
    "search_element_incidents": _READ_INSTANCE,
    "get_incident": _READ_JOB,
    "resolve_incident": _UPDATE_JOB,
    "discard_incident": _UPDATE_JOB,
    # schedules
    "put_schedule": _one(_R.SCHEDULE, _P.UPDATE),
    "delete_schedule": _one(_R.SCHEDULE, _P.DELETE),
    "list_schedules": _one(_R.SCHEDULE, _P.READ),
    # processes
    "deploy": _one(_R.RESOURCE, _P.CREATE),
    "list_definitions": _process(_P.READ_PROCESS_DEFINITION),
    "search_definitions": _process(_P.READ_PROCESS_DEFINITION),
    "get_definition": _process(_P.READ_PROCESS_DEFINITION),
    "get_definition_source": _process(_P.READ_PROCESS_DEFINITION),
    "get_definition_xml": _process(_P.READ_PROCESS_DEFINITION),
    "create_instance": _process(_P.CREATE_PROCESS_INSTANCE),
    "start_instances": _process(_P.CREATE_PROCESS_INSTANCE),
    "get_instance": _READ_INSTANCE,
    "get_instance_details": _READ_INSTANCE,
    "list_instances": _READ_INSTANCE,
    "search_instances": _READ_INSTANCE,
    "search_elements": _READ_INSTANCE,
    "get_element": _READ_INSTANCE,
    "search_variables": _READ_INSTANCE,
    "get_variable": _READ_INSTANCE,
    "set_variables": _UPDATE_INSTANCE,
    "migrate_instance": _UPDATE_INSTANCE,
    "modify_instance": _process(_P.MODIFY_PROCESS_INSTANCE),
    "change_tokens": _process(_P.MODIFY_PROCESS_INSTANCE),
    "cancel_instance": _process(_P.CANCEL_PROCESS_INSTANCE),
    "publish_message": _one(_R.MESSAGE, _P.CREATE),
    "correlate_message": _one(_R.MESSAGE, _P.CREATE),
    # batch operations
    "create_batch_operation": _batch(),
    "retry_batch_operation": _batch(),
    "cancel_instances": _batch("CANCEL_PROCESS_INSTANCE"),
    "modify_instances": _batch("MODIFY_PROCESS_INSTANCE"),
    "migrate_instances": _batch("MIGRATE_PROCESS_INSTANCE"),
    "delete_instances": _batch("DELETE_PROCESS_INSTANCE"),
    "resolve_incidents": _batch("RESOLVE_INCIDENT"),
    "resolve_instance_incidents": _batch("RESOLVE_INCIDENT"),
    "retry_tasks": _batch("RETRY_TASK"),
    "discard_tasks": _batch("DISCARD_TASK"),
    "get_batch_operation": _one(_R.BATCH, _P.READ),
    "get_batch_operation_details": _one(_R.BATCH, _P.READ),
    "search_batch_operations": _one(_R.BATCH, _P.READ),
    "list_batch_operations": _one(_R.BATCH, _P.READ),
    "search_batch_operation_items": _one(_R.BATCH, _P.READ),
    "list_batch_operation_items": _one(_R.BATCH, _P.READ),
    "suspend_batch_operation": _one(_R.BATCH, _P.UPDATE),
    "resume_batch_operation": _one(_R.BATCH, _P.UPDATE),
    "cancel_batch_operation": _one(_R.BATCH, _P.UPDATE),
    "change_batch_operation": _one(_R.BATCH, _P.UPDATE),
    # distributions, the log
    "search_distributions": _one(_R.DISTRIBUTION, _P.READ),
    "get_distribution": _one(_R.DISTRIBUTION, _P.READ),
    "skip_distribution": _one(_R.DISTRIBUTION, _P.UPDATE),
    "cancel_distribution": _one(_R.DISTRIBUTION, _P.UPDATE),
    "resume_distributions": _one(_R.DISTRIBUTION, _P.UPDATE),
    "get_journal_bounds": _one(_R.JOURNAL, _P.READ),
    "get_journal_bounds_since": _one(_R.JOURNAL, _P.READ),
    "read_journal": _one(_R.JOURNAL, _P.READ),
    # identity
    "create_user": _one(_R.USER, _P.CREATE),
    "list_users": _one(_R.USER, _P.READ),
    "get_user": _one(_R.USER, _P.READ),
    "search_users": _one(_R.USER, _P.READ),
    "update_user": _one(_R.USER, _P.UPDATE),
    "delete_user": _one(_R.USER, _P.DELETE),
    "create_group": _one(_R.GROUP, _P.CREATE),
    "list_groups": _one(_R.GROUP, _P.READ),
    "get_group": _one(_R.GROUP, _P.READ),
    "search_groups": _one(_R.GROUP, _P.READ),
    "search_group_roles": _one(_R.ROLE, _P.READ),
    "search_users_for_group": _one(_R.GROUP, _P.READ),
    "search_clients_for_group": _one(_R.GROUP, _P.READ),
    "update_group": _one(_R.GROUP, _P.UPDATE),
    "delete_group": _one(_R.GROUP, _P.DELETE),
    "assign_user_to_group": _one(_R.GROUP, _P.UPDATE),
    "assign_client_to_group": _one(_R.GROUP, _P.UPDATE),
    "unassign_user_from_group": _one(_R.GROUP, _P.UPDATE),
    "unassign_client_from_group": _one(_R.GROUP, _P.UPDATE),
    "create_role": _one(_R.ROLE, _P.CREATE),
    "list_roles": _one(_R.ROLE, _P.READ),
    "get_role": _one(_R.ROLE, _P.READ),
    "search_roles": _one(_R.ROLE, _P.READ),
    "search_users_for_role": _one(_R.ROLE, _P.READ),
    "search_clients_for_role": _one(_R.ROLE, _P.READ),
    "search_groups_for_role": _one(_R.ROLE, _P.READ),
    "update_role": _one(_R.ROLE, _P.UPDATE),
    "delete_role": _one(_R.ROLE, _P.DELETE),
    "assign_user_to_role": _one(_R.ROLE, _P.UPDATE),
    "assign_client_to_role": _one(_R.ROLE, _P.UPDATE),
    "assign_group_to_role": _one(_R.ROLE, _P.UPDATE),
    "unassign_user_from_role": _one(_R.ROLE, _P.UPDATE),
    "unassign_client_from_role": _one(_R.ROLE, _P.UPDATE),
    "unassign_group_from_role": _one(_R.ROLE, _P.UPDATE),
    "create_token": _one(_R.TOKEN, _P.CREATE),
    "list_tokens": _one(_R.TOKEN, _P.READ),
    "delete_token": _one(_R.TOKEN, _P.DELETE),
    "create_authorization": _one(_R.AUTHORIZATION, _P.CREATE),
    "list_authorizations": _one(_R.AUTHORIZATION, _P.READ),
    "get_authorization": _one(_R.AUTHORIZATION, _P.READ),
    "search_authorizations": _one(_R.AUTHORIZATION, _P.READ),
    "update_authorization": _one(_R.AUTHORIZATION, _P.UPDATE),
    "delete_authorization": _one(_R.AUTHORIZATION, _P.DELETE),
    "get_own_identity": Everyone.KNOWN,
    "search_own_authorizations": Everyone.KNOWN,
    # the node
    "get_topology": Everyone.KNOWN,
    "get_metrics": _one(_R.SYSTEM, _P.READ),
    "pin_clock": _one(_R.SYSTEM, _P.UPDATE),
    "reset_clock": _one(_R.SYSTEM, _P.UPDATE),
    "get_status": Everyone.ANYBODY,
    "get_health": Everyone.ANYBODY,
    "get_openapi": Everyone.KNOWN,
}
"""What is needed, by the name of the endpoint."""
