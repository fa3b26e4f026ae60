"""Reads messages as h11 does. Standard input: {"requests": [latin-1 text, ...], "responses": [[method, text, closes], ...]}."""

import json
import sys

import h11

LIMIT = 64 * 1024


def text(value):
    return bytes(value).decode("latin-1")


def drain(connection, reading, head):
    """Reads events up to the end of what has come; true if the connection goes on behind a whole message."""
    while True:
        event = connection.next_event()
        if event in (h11.NEED_DATA, h11.PAUSED) or isinstance(event, h11.ConnectionClosed):
            return False
        if isinstance(event, h11.Data):
            reading[-1]["body"] += text(event.data)
        elif isinstance(event, h11.EndOfMessage):
            reading[-1]["whole"] = True
            reading[-1]["trailers"] = [[text(n), text(v)] for n, v in event.headers]
            return True
        else:
            reading.append(head(event))


def read_requests(data):
    reading = []
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=LIMIT)
    head = lambda event: {
        "method": text(event.method),
        "target": text(event.target),
        "fields": [[text(n), text(v)] for n, v in event.headers],
        "body": "",
        "whole": False,
    }
    try:
        connection.receive_data(data)
        while drain(connection, reading, head):
            connection.send(h11.Response(status_code=200, headers=[("content-length", "0")]))
            connection.send(h11.EndOfMessage())
            if connection.our_state is h11.MUST_CLOSE or connection.our_state is h11.SWITCHED_PROTOCOL:
                return {"messages": reading, "refused": None, "stopped": True}
            connection.start_next_cycle()
        stopped = connection.their_state not in (h11.IDLE, h11.SEND_BODY)
        return {"messages": reading, "refused": None, "stopped": stopped}
    except h11.RemoteProtocolError as error:
        return {"messages": reading, "refused": str(error), "stopped": False}
    except h11.LocalProtocolError:
        return {"messages": reading, "refused": None, "stopped": True}


def read_response(method, data, closes):
    reading = []
    connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=LIMIT)
    connection.send(h11.Request(method=method, target="/", headers=[("host", "a")]))
    connection.send(h11.EndOfMessage())
    head = lambda event: {
        "status": event.status_code,
        "fields": [[text(n), text(v)] for n, v in event.headers],
        "body": "",
        "whole": False,
    }
    try:
        connection.receive_data(data)
        drained = drain(connection, reading, head)
        if not drained and closes:
            connection.receive_data(b"")
            drain(connection, reading, head)
        return {"messages": reading, "refused": None}
    except h11.RemoteProtocolError as error:
        return {"messages": reading, "refused": str(error)}


asked = json.load(sys.stdin)
json.dump(
    {
        "requests": [read_requests(one.encode("latin-1")) for one in asked.get("requests", [])],
        "responses": [
            read_response(method, one.encode("latin-1"), closes) for method, one, closes in asked.get("responses", [])
        ],
    },
    sys.stdout,
)
