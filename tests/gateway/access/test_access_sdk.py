"""The public client of the REST API says who asks by a name and a password."""

import asyncio
from pathlib import Path

import pytest
from camunda_orchestration_sdk import CamundaAsyncClient
from camunda_orchestration_sdk.models import ProcessCreationById
from tests.gateway.access.access_node import guarded
from tests.gateway.rest.sdk import ORDER, file_of

from holdfast.engine.identity.values import OwnerType, Permission, ResourceType
from holdfast.gateway.identity.shapes import NewUser

_DEFINITION = ResourceType.PROCESS_DEFINITION


def client_of(url: str, username: str, password: str) -> CamundaAsyncClient:
    return CamundaAsyncClient(
        configuration={
            "CAMUNDA_REST_ADDRESS": url,
            "CAMUNDA_SDK_LOG_LEVEL": "silent",
            "CAMUNDA_AUTH_STRATEGY": "BASIC",
            "CAMUNDA_BASIC_AUTH_USERNAME": username,
            "CAMUNDA_BASIC_AUTH_PASSWORD": password,
        }
    )


def test_the_client_does_what_its_user_may(tmp_path: Path) -> None:
    async def run() -> None:
        async with guarded(basic_authentication=True) as there:
            await there.admin.identity.create_user(NewUser("ada", "right"))
            new = ProcessCreationById(process_definition_id="order")
            async with client_of(there.url, "ada", "right") as client:
                with pytest.raises(Exception, match="403"):
                    await client.deploy_resources_from_files([file_of(ORDER, tmp_path)])
                user = OwnerType.USER
                await there.let(
                    "ada", ResourceType.RESOURCE, "order", Permission.CREATE, type_=user
                )
                await client.deploy_resources_from_files([file_of(ORDER, tmp_path)])
                with pytest.raises(Exception, match="403"):
                    await client.create_process_instance(data=new)
                given = Permission.CREATE_PROCESS_INSTANCE
                await there.let("ada", _DEFINITION, "order", given, type_=user)
                assert (await client.create_process_instance(data=new)).process_instance_key
            async with client_of(there.url, "ada", "wrong") as client:
                with pytest.raises(Exception, match="401"):
                    await client.create_process_instance(data=new)

    asyncio.run(run())
