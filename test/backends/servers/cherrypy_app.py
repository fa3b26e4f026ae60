import os

import cherrypy


def reached(name):
    cherrypy.response.headers["X-Reached"] = name
    return "reached"


class Export:
    @cherrypy.expose
    def default(self, id):
        if cherrypy.request.method not in ("GET", "HEAD"):
            raise cherrypy.HTTPError(405)
        return reached("export")


class Admin:
    @cherrypy.expose
    def default(self, *rest):
        return reached("admin")


class Folder:
    pass


class Root:
    @cherrypy.expose
    def login(self):
        if cherrypy.request.method != "POST":
            raise cherrypy.HTTPError(405)
        return reached("login")


root = Root()
root.admin = Admin()
root.api = Folder()
root.api.v1 = Folder()
root.api.v1.export = Export()
cherrypy.config.update({
    "server.socket_host": "127.0.0.1",
    "server.socket_port": int(os.environ["PORT"]),
    "server.thread_pool": 32,
    "environment": "production",
    "log.screen": False,
})
cherrypy.quickstart(root)
