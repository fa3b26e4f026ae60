"""Starlette, on which FastAPI is built, as `app` on uvicorn."""

from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]


def reached(name):
    async def handler(_):
        return PlainTextResponse("reached", headers={"X-Reached": name})

    return handler


app = Starlette(
    routes=[
        Route("/login", reached("login"), methods=["POST"]),
        Route("/api/v1/export/{id}", reached("export"), methods=["GET"]),
        Route("/admin/{rest:path}", reached("admin"), methods=METHODS),
    ]
)
