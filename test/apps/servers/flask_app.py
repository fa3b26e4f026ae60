"""Flask with what a site does: sessions, uploads, streams, addresses of its own."""

import hashlib

from flask import Flask, Response, jsonify, redirect, request, session, stream_with_context, url_for
from werkzeug.middleware.proxy_fix import ProxyFix

app = Flask(__name__)
app.secret_key = "known to everybody"
app.wsgi_app = ProxyFix(app.wsgi_app, x_for=1, x_proto=1, x_host=1)


@app.get("/")
def who():
    return jsonify(protocol=request.scheme, host=request.host, address=request.remote_addr)


@app.post("/login")
def login():
    session["user"] = request.form["user"]
    return redirect(url_for("profile", _external=True))


@app.get("/profile")
def profile():
    return jsonify(user=session.get("user"))


@app.post("/upload")
def upload():
    return jsonify(
        fields=request.form.to_dict(flat=False),
        files=[
            dict(name=file.filename, type=file.content_type, hash=hashlib.sha256(file.read()).hexdigest())
            for file in request.files.getlist("file")
        ],
    )


@app.route("/raw", methods=["POST", "PUT"])
def raw():
    # The input ends where the gateway's framing says so.
    request.environ["wsgi.input_terminated"] = True
    body = request.stream.read()
    return jsonify(bytes=len(body), hash=hashlib.sha256(body).hexdigest())


@app.get("/stream")
def stream():
    def lines():
        for index in range(2000):
            yield f"line {index} " + "x" * (index * 7 % 200) + "\n"

    return Response(stream_with_context(lines()), mimetype="text/plain")


@app.get("/query")
def query():
    return jsonify(request.args.to_dict(flat=False))


@app.get("/headers")
def headers():
    return jsonify(agent=request.headers.get("User-Agent"), own=request.headers.get("X-Own-Header"))


@app.get("/refused")
def refused():
    return Response("no", 401, {"WWW-Authenticate": 'Basic realm="a"'})
