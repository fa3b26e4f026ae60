"""Reads a list of texts in base64, and writes for each what a library of Python takes for the value. READER says which."""

import base64
import http.cookies
import json
import os
import re
import sys
import uuid


def webob_query(text):
    import webob

    # Of a broken escape WebOb makes a control character (`%6` is one), which no value has.
    if re.search(r"%(?![0-9a-fA-F]{2})", text):
        return []

    return webob.Request.blank("/?" + text).GET.getall("user")


def webob_cookie(text):
    import webob

    value = webob.Request.blank("/", headers={"Cookie": text}).cookies.get("sid")
    # A character that ends a value elsewhere is a part of it if escaped: such a value counts as the text before it.
    return [] if value is None or re.search(r"[;,\s]", value) else [value]


def simple_cookie(text):
    cookies = http.cookies.SimpleCookie(text)
    # A character for each byte.
    return [cookies["sid"].value.encode("latin1").decode("utf-8", "surrogateescape")] if "sid" in cookies else []


def flask_int():
    from werkzeug.routing import Map, Rule

    paths = Map([Rule("/p/<int:id>", endpoint="p")]).bind("localhost")
    return lambda text: [str(paths.match("/p/" + text.encode("latin1").decode())[1]["id"])]


READERS = {
    "webob-query": lambda: webob_query,
    "webob-cookie": lambda: webob_cookie,
    "http.cookies": lambda: simple_cookie,
    "flask-int": flask_int,
    "int": lambda: lambda text: [str(int(text.encode("latin1").decode()))],
    "uuid": lambda: lambda text: [uuid.UUID(text.encode("latin1").decode()).hex],
}


def read_all(read, texts):
    for text in texts:
        try:
            values = read(base64.b64decode(text).decode("latin1"))
        except Exception:
            values = []
        yield [base64.b64encode(value.encode("utf-8", "surrogateescape")).decode() for value in values]


print(json.dumps(list(read_all(READERS[os.environ["READER"]](), json.load(sys.stdin)))))
