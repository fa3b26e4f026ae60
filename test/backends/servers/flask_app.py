"""Flask as `app` on gunicorn. VARIANT: plain, loose, snippet or proxyfix."""

import os

from flask import Flask
from werkzeug.middleware.proxy_fix import ProxyFix

variant = os.environ["VARIANT"]
app = Flask(__name__, static_folder=None)
if variant == "loose":
    app.url_map.strict_slashes = False
METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]


def reached(name):
    return "reached", 200, {"X-Reached": name}


@app.post("/login")
def login():
    return reached("login")


@app.get("/api/v1/export/<id>")
def export(id):
    return reached("export")


@app.route("/admin/<path:rest>", methods=METHODS)
def admin(rest):
    return reached("admin")


class ReverseProxied:
    """The snippet that many copy to serve Flask below a prefix (flask.pocoo.org/snippets/35)."""

    def __init__(self, wsgi_app):
        self.wsgi_app = wsgi_app

    def __call__(self, environ, start_response):
        script_name = environ.get("HTTP_X_SCRIPT_NAME", "")
        if script_name:
            environ["SCRIPT_NAME"] = script_name
            path_info = environ["PATH_INFO"]
            if path_info.startswith(script_name):
                environ["PATH_INFO"] = path_info[len(script_name) :]
        scheme = environ.get("HTTP_X_SCHEME", "")
        if scheme:
            environ["wsgi.url_scheme"] = scheme
        return self.wsgi_app(environ, start_response)


if variant == "snippet":
    app.wsgi_app = ReverseProxied(app.wsgi_app)
if variant == "proxyfix":
    app.wsgi_app = ProxyFix(app.wsgi_app, x_for=1, x_proto=1, x_host=1, x_prefix=1)
