"""Reads a list of requests, and writes for each what a framework of Python takes for the value of `email`, or of
`user.email`, as NAMES has it. READER says which framework."""

import base64
import io
import json
import os
import sys


def flat(value):
    if value is None or isinstance(value, dict):
        return []
    if isinstance(value, list):
        return [one for each in value for one in flat(each)]
    return [value if isinstance(value, str) else json.dumps(value)]


NAMES = os.environ["NAMES"].split(".")
FIELDS = NAMES if len(NAMES) == 1 else [f"{NAMES[0]}[{NAMES[1]}]", ".".join(NAMES)]


def at(value):
    for name in NAMES:
        value = value.get(name) if isinstance(value, dict) else None
    return flat(value)


def of_json(value):
    return [one for each in value for one in at(each)] if isinstance(value, list) else at(value)


def of_form(form):
    return [one for field in FIELDS for one in form.getlist(field)]


def environ(types, query, body):
    return {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": "/",
        "SCRIPT_NAME": "",
        "QUERY_STRING": query,
        "SERVER_NAME": "x",
        "SERVER_PORT": "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "CONTENT_LENGTH": str(len(body)),
        # As WSGI servers join the lines.
        "CONTENT_TYPE": ",".join(types),
        "wsgi.input": io.BytesIO(body),
        "wsgi.url_scheme": "http",
        "wsgi.errors": sys.stderr,
        "REMOTE_ADDR": "127.0.0.1",
    }


def flask(types, query, body):
    from flask import Flask, request

    app = flask.app = getattr(flask, "app", None) or Flask("x")
    with app.request_context(environ(types, query, body)):
        form = of_form(request.values)
    with app.request_context(environ(types, query, body)):
        return form + of_json(request.get_json(force=True, silent=True))


def django(types, query, body):
    from django.conf import settings

    if not settings.configured:
        settings.configure(DEBUG=False, DEFAULT_CHARSET="utf-8")
    from django.core.handlers.wsgi import WSGIRequest

    request = WSGIRequest(environ(types, query, body))
    try:
        form = of_form(request.POST)
    except Exception:
        form = []
    try:
        return form + of_json(json.loads(WSGIRequest(environ(types, query, body)).body))
    except Exception:
        return form


def starlette(types, query, body):
    import asyncio

    from starlette.requests import Request

    headers = [(b"content-type", one.encode("latin1")) for one in types] + [(b"content-length", str(len(body)).encode())]
    scope = {"type": "http", "method": "POST", "path": "/", "query_string": query.encode("latin1"), "headers": headers}

    def fresh():
        async def receive():
            return {"type": "http.request", "body": body, "more_body": False}

        return Request(scope, receive)

    async def read():
        values = []
        try:
            values += [one for one in of_form(await fresh().form()) if isinstance(one, str)]
        except Exception:
            pass
        try:
            values += of_json(await fresh().json())
        except Exception:
            pass
        return values

    return asyncio.run(read())


def of_latin1(value):
    """What stands in the dictionaries of bottle, in UTF-8 where that is possible."""
    try:
        return value.encode("latin1").decode()
    except UnicodeError:
        return value


def bottle(types, query, body):
    from bottle import BaseRequest

    values = []
    for read in (
        lambda request: [of_latin1(one) for field in FIELDS for one in request.params.getall(field)],
        lambda request: of_json(request.json),
    ):
        try:
            values += read(BaseRequest(environ(types, query, body)))
        except Exception:
            pass
    return [one for one in values if isinstance(one, str)]


def webob(types, query, body):
    from webob import Request

    values = []
    for read in (
        lambda request: [one for field in FIELDS for one in request.params.getall(field)],
        lambda request: of_json(request.json_body),
    ):
        try:
            values += read(Request(environ(types, query, body)))
        except Exception:
            pass
    return [one for one in values if isinstance(one, str)]


def tornado(types, query, body):
    from tornado.httputil import HTTPHeaders, HTTPServerRequest

    class Connection:
        context = None

    headers = HTTPHeaders({"Content-Length": str(len(body))})
    for one in types:
        headers.add("Content-Type", one)
    request = HTTPServerRequest("POST", f"/?{query}", headers=headers, body=body, host="x", connection=Connection())
    try:
        request._parse_body()
    except Exception:
        pass
    values = [one.decode("utf-8", "replace") for field in FIELDS for one in request.arguments.get(field, [])]
    try:
        return values + of_json(json.loads(body))
    except Exception:
        return values


def falcon(types, query, body):
    import falcon as library

    def request():
        return library.Request(environ(types, query, body), options=library.RequestOptions())

    values = []
    try:
        media = request().get_media()
        if isinstance(media, (dict, list)):
            values += of_json(media)
            values += [one for field in FIELDS if isinstance(media, dict) for one in flat(media.get(field))]
        else:
            for part in media:
                if part.name in FIELDS:
                    values.append(part.text)
    except Exception:
        pass
    try:
        values += [one for field in FIELDS for one in flat(request().get_param_as_list(field))]
    except Exception:
        pass
    return [one for one in values if isinstance(one, str)]


def cherrypy(types, query, body):
    import cherrypy as library

    found = []

    class Root:
        @library.expose
        def index(self, **fields):
            found.extend(one for field in FIELDS for one in flat(fields.get(field)))
            return b""

    library.config.update({"log.screen": False, "environment": "embedded"})
    app = library.Application(Root(), "")
    server = {"wsgi.multithread": False, "wsgi.multiprocess": False, "wsgi.run_once": False, "HTTP_HOST": "x"}
    list(app({**environ(types, query, body), **server}, lambda *_: None))
    try:
        return found + of_json(json.loads(body))
    except Exception:
        return found


READERS = {
    "flask": flask,
    "django": django,
    "starlette": starlette,
    "bottle": bottle,
    "webob": webob,
    "tornado": tornado,
    "falcon": falcon,
    "cherrypy": cherrypy,
}
read = READERS[os.environ["READER"]]


def sound(text):
    """UTF-8, with U+FFFD for the halves of surrogate pairs."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def ask(one):
    try:
        values = read(one["types"], one["query"], base64.b64decode(one["body"]))
    except Exception:
        return []
    return [base64.b64encode(sound(value)).decode() for value in values]


print(json.dumps([ask(one) for one in json.load(sys.stdin)]))
