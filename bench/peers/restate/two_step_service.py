# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
"""A service with one handler of two durable steps, for an ASGI server to serve."""

import restate

two_step = restate.Service("TwoStep")


async def reserve(number: int) -> dict[str, int]:
    return {"reserved": number}


async def charge(number: int) -> dict[str, int]:
    return {"charged": number}


@two_step.handler()
async def run(context: restate.Context, number: int) -> dict[str, int]:
    reserved = await context.run_typed("reserve", reserve, number=number)
    charged = await context.run_typed("charge", charge, number=number)
    return {**reserved, **charged}


app = restate.app(services=[two_step])
