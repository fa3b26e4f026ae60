import os

from aiohttp import web


def reached(name):
    async def handler(_):
        return web.Response(text="reached", headers={"X-Reached": name})

    return handler


app = web.Application()
app.router.add_post("/login", reached("login"))
app.router.add_get("/api/v1/export/{id}", reached("export"))
app.router.add_route("*", "/admin/{rest:.*}", reached("admin"))
web.run_app(app, host="127.0.0.1", port=int(os.environ["PORT"]), access_log=None, print=None)
