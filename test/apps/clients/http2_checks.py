"""What RFC 9113 asks of a server, each on a connection of its own, written frame by frame.

Prints a JSON object: the number of checks, and the received frames of each that failed.
"""

import json
import socket
import ssl
import struct
import sys
from urllib.parse import urlsplit

import h2.config
import h2.connection
import h2.events
import hpack
import hyperframe.frame as frames

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
ERRORS = {
    0: "NO_ERROR",
    1: "PROTOCOL_ERROR",
    2: "INTERNAL_ERROR",
    3: "FLOW_CONTROL_ERROR",
    4: "SETTINGS_TIMEOUT",
    5: "STREAM_CLOSED",
    6: "FRAME_SIZE_ERROR",
    7: "REFUSED_STREAM",
    8: "CANCEL",
    9: "COMPRESSION_ERROR",
    11: "ENHANCE_YOUR_CALM",
}
origin = urlsplit(sys.argv[1])


def connect():
    context = ssl.create_default_context(cafile=sys.argv[3])
    context.set_alpn_protocols(["h2"])
    plain = socket.create_connection((origin.hostname, origin.port), timeout=30)
    secure = context.wrap_socket(plain, server_hostname=origin.hostname)
    assert secure.selected_alpn_protocol() == "h2"
    return secure


class Raw:
    """A connection that sends what it is told to, whatever the protocol says of it."""

    def __init__(self, settings=None):
        self.socket = connect()
        self.encoder = hpack.Encoder()
        self.decoder = hpack.Decoder()
        self.buffer = b""
        self.socket.sendall(PREFACE)
        self.send(frames.SettingsFrame(0, settings=settings or {}))
        self.frame_of(frames.SettingsFrame)
        self.send(frames.SettingsFrame(0, flags=["ACK"]))

    def send(self, *sent):
        self.socket.sendall(b"".join(frame.serialize() for frame in sent))

    def send_bytes(self, kind, flags, stream, payload, length=None):
        size = len(payload) if length is None else length
        self.socket.sendall(struct.pack(">I", size)[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload)

    def headers(self, fields, stream=1, end_stream=True, end_headers=True):
        block = self.encoder.encode(fields)
        flags = (["END_STREAM"] if end_stream else []) + (["END_HEADERS"] if end_headers else [])
        return frames.HeadersFrame(stream, block, flags=flags)

    def read(self, size):
        while len(self.buffer) < size:
            received = self.socket.recv(65536)
            if not received:
                return None
            self.buffer += received
        taken, self.buffer = self.buffer[:size], self.buffer[size:]
        return taken

    def frame(self):
        """The next frame, or None where the connection has been closed."""
        try:
            head = self.read(9)
            if head is None:
                return None
            frame, length = frames.Frame.parse_frame_header(memoryview(head))
            body = self.read(length)
            if body is None:
                return None
            frame.parse_body(memoryview(body))
            return frame
        except (ConnectionError, ssl.SSLError):
            return None

    def frame_of(self, *kinds):
        while True:
            frame = self.frame()
            if frame is None or isinstance(frame, kinds):
                return frame

    def outcome(self, stream=1):
        """A status, the reset of the stream, the error of the connection, or its end."""
        while True:
            frame = self.frame()
            if frame is None:
                return "closed"
            if isinstance(frame, frames.GoAwayFrame):
                return f"GOAWAY {ERRORS.get(frame.error_code, frame.error_code)}"
            if isinstance(frame, frames.RstStreamFrame) and frame.stream_id == stream:
                return f"RST_STREAM {ERRORS.get(frame.error_code, frame.error_code)}"
            if isinstance(frame, frames.HeadersFrame):
                fields = dict(self.decoder.decode(frame.data))
                if frame.stream_id == stream:
                    return fields[":status"]


def get(path="/", extra=(), **changed):
    pseudo = {":method": "GET", ":scheme": "https", ":authority": origin.netloc, ":path": path}
    pseudo.update({":" + name: value for name, value in changed.items()})
    return [(name, value) for name, value in pseudo.items() if value is not None] + list(extra)


def post(extra=(), **changed):
    return get("/hash", extra, method="POST", **changed)


# Name to the action, and its accepted outcomes.
CHECKS = {}


def check(*accepted):
    def register(function):
        CHECKS[function.__name__] = (function, accepted)
        return function

    return register


# Accepted outcomes.


@check("200")
def plain_get():
    raw = Raw()
    raw.send(raw.headers(get()))
    return raw.outcome()


@check("12345678")
def ping_is_answered_with_its_bytes():
    raw = Raw()
    raw.send(frames.PingFrame(0, b"12345678"))
    return raw.frame_of(frames.PingFrame).opaque_data.decode()


@check(["ACK"])
def settings_are_acknowledged():
    raw = Raw()
    raw.send(frames.SettingsFrame(0, settings={4: 100}))
    return sorted(raw.frame_of(frames.SettingsFrame).flags)


@check("200")
def unknown_frame_is_ignored():
    raw = Raw()
    raw.send_bytes(0xEE, 0xFF, 0, b"whatever")
    raw.send(raw.headers(get()))
    return raw.outcome()


@check("200")
def unknown_setting_is_ignored():
    raw = Raw({0xEEEE: 5})
    raw.send(raw.headers(get()))
    return raw.outcome()


@check("200")
def head_in_continuations():
    raw = Raw()
    block = raw.encoder.encode(get(extra=[("x-long", "a" * 5000)]))
    pieces = [block[i : i + 700] for i in range(0, len(block), 700)]
    raw.send(
        frames.HeadersFrame(1, pieces[0], flags=["END_STREAM"]),
        *(frames.ContinuationFrame(1, piece) for piece in pieces[1:-1]),
        frames.ContinuationFrame(1, pieces[-1], flags=["END_HEADERS"]),
    )
    return raw.outcome()


@check("200")
def padded_frames():
    raw = Raw()
    block = raw.encoder.encode(post([("content-length", "2")]))
    raw.send(
        frames.HeadersFrame(1, block, flags=["END_HEADERS", "PADDED"], pad_length=50),
        frames.DataFrame(1, b"ab", flags=["END_STREAM", "PADDED"], pad_length=200),
    )
    return raw.outcome()


@check("200")
def priority_is_ignored():
    raw = Raw()
    raw.send(frames.PriorityFrame(1, depends_on=0, stream_weight=5, exclusive=False))
    raw.send(raw.headers(get()))
    return raw.outcome()


@check("200")
def trailers_of_a_request():
    raw = Raw()
    raw.send(raw.headers(post(), end_stream=False), frames.DataFrame(1, b"abc"))
    raw.send(raw.headers([("x-trailer", "1")]))
    return raw.outcome()


@check("200")
def empty_data_frames():
    raw = Raw()
    raw.send(raw.headers(post(), end_stream=False), *(frames.DataFrame(1, b"") for _ in range(5)))
    raw.send(frames.DataFrame(1, b"a", flags=["END_STREAM"]))
    return raw.outcome()


@check("a=1; b=2")
def cookie_in_crumbs():
    raw = Raw()
    raw.send(raw.headers(get("/cookies", [("cookie", "a=1"), ("cookie", "b=2")])))
    raw.frame_of(frames.HeadersFrame)
    return json.loads(raw.frame_of(frames.DataFrame).data)["got"]


@check(["<p>Hello, ", "PingFrame", "HTTP/2</p>"])
def response_waits_for_the_window():
    """With a window of 10 bytes: so many, then the rest once there is room."""
    raw = Raw({4: 10})
    raw.send(raw.headers(get("/files/page.html")))
    first = raw.frame_of(frames.DataFrame).data
    raw.send(frames.PingFrame(0, b"12345678"))
    between = raw.frame_of(frames.DataFrame, frames.PingFrame)
    raw.send(frames.WindowUpdateFrame(1, window_increment=1000))
    rest = raw.frame_of(frames.DataFrame).data
    return [first.decode(), type(between).__name__, rest.decode()]


@check(True)
def many_streams_at_once():
    connection = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
    opened = connect()
    connection.initiate_connection()
    ids = []
    for index in range(50):
        ids.append(connection.get_next_available_stream_id())
        connection.send_headers(ids[-1], get(f"/params/{index}"), end_stream=True)
    opened.sendall(connection.data_to_send())
    bodies = {stream: b"" for stream in ids}
    ended = set()
    while len(ended) < len(ids):
        for event in connection.receive_data(opened.recv(65536)):
            if isinstance(event, h2.events.DataReceived):
                bodies[event.stream_id] += event.data
            if isinstance(event, h2.events.StreamEnded):
                ended.add(event.stream_id)
        opened.sendall(connection.data_to_send())
    return all(json.loads(bodies[stream])["name"] == str(index) for index, stream in enumerate(ids))


@check("200")
def reset_stream_leaves_the_connection():
    raw = Raw()
    raw.send(raw.headers(post(), end_stream=False), frames.RstStreamFrame(1, error_code=8))
    raw.send(raw.headers(get(), stream=3))
    return raw.outcome(3)


# Malformed requests: the stream must be reset, perhaps after a 400 (RFC 9113, 8.1.1), or with it the connection (5.4).

MALFORMED = ("400", "RST_STREAM PROTOCOL_ERROR", "GOAWAY PROTOCOL_ERROR", "GOAWAY INTERNAL_ERROR", "closed")


def malformed(name, fields, body=None):
    def run():
        raw = Raw()
        raw.send(raw.headers(fields, end_stream=body is None))
        if body is not None:
            raw.send(frames.DataFrame(1, body, flags=["END_STREAM"]))
        return raw.outcome()

    CHECKS["malformed: " + name] = (run, MALFORMED)


def unreadable(name, field):
    """Node's library leaves such a field out instead. It must not arrive."""

    def run():
        raw = Raw()
        raw.send(raw.headers(get("/odd-fields", [field])))
        outcome = raw.outcome()
        return json.loads(raw.frame_of(frames.DataFrame).data) if outcome == "200" else outcome

    CHECKS["malformed: " + name] = (run, (*MALFORMED, []))


malformed("upper-case name", get(extra=[("X-Upper", "1")]))
malformed("connection field", get(extra=[("connection", "close")]))
malformed("transfer-encoding", get(extra=[("transfer-encoding", "chunked")]))
malformed("keep-alive", get(extra=[("keep-alive", "1")]))
malformed("upgrade", get(extra=[("upgrade", "websocket")]))
malformed("te other than trailers", get(extra=[("te", "gzip")]))
malformed("pseudo-header after a field", [("x-a", "1")] + get())
malformed("unknown pseudo-header", get(extra=[(":unknown", "1")]))
malformed("response pseudo-header", get(extra=[(":status", "200")]))
malformed("two methods", [(":method", "GET")] + get())
malformed("two paths", get() + [(":path", "/other")])
malformed("no method", get(method=None))
malformed("no scheme", get(scheme=None))
malformed("no path", get(path=None))
malformed("empty path", get(path=""))
unreadable("line feed in a value", ("x-odd", "1\n2"))
unreadable("NUL in a value", ("x-odd", "1\0"))
unreadable("blank in a name", ("x odd", "1"))
malformed("content-length too large", post([("content-length", "5")]), b"abc")
malformed("content-length too small", post([("content-length", "1")]), b"abc")
malformed("content-length without a body", post([("content-length", "1")]))


@check(*MALFORMED)
def malformed_pseudo_header_in_trailers():
    raw = Raw()
    raw.send(raw.headers(post(), end_stream=False), frames.DataFrame(1, b"abc"))
    raw.send(raw.headers([(":method", "GET")]))
    return raw.outcome()


# Frames that end the connection with an error, or at least the stream. The error is lost if a reset follows it.


def broken(name, send, error="PROTOCOL_ERROR"):
    def run():
        raw = Raw()
        send(raw)
        return raw.outcome()

    CHECKS["broken: " + name] = (run, ("GOAWAY " + error, "RST_STREAM " + error, "closed"))


def u32(value):
    return struct.pack(">I", value)


def open_upload(raw):
    raw.send(raw.headers(post(), end_stream=False))


broken("DATA on stream 0", lambda raw: raw.send_bytes(0, 0, 0, b"abc"))
broken("DATA on an idle stream", lambda raw: raw.send_bytes(0, 1, 5, b"abc"))
broken("HEADERS on stream 0", lambda raw: raw.send_bytes(1, 5, 0, raw.encoder.encode(get())))
broken("HEADERS on an even stream", lambda raw: raw.send_bytes(1, 5, 2, raw.encoder.encode(get())))
broken("CONTINUATION without HEADERS", lambda raw: raw.send_bytes(9, 4, 1, raw.encoder.encode(get())))
broken(
    "a frame between HEADERS and CONTINUATION",
    lambda raw: raw.send(raw.headers(get(), end_headers=False), frames.PingFrame(0, b"12345678")),
)
broken("RST_STREAM on an idle stream", lambda raw: raw.send_bytes(3, 0, 1, u32(8)))
broken("RST_STREAM on stream 0", lambda raw: raw.send_bytes(3, 0, 0, u32(8)))
broken("RST_STREAM of 3 bytes", lambda raw: (open_upload(raw), raw.send_bytes(3, 0, 1, b"abc")), "FRAME_SIZE_ERROR")
broken("SETTINGS on a stream", lambda raw: raw.send_bytes(4, 0, 1, b""))
broken("SETTINGS of 5 bytes", lambda raw: raw.send_bytes(4, 0, 0, b"12345"), "FRAME_SIZE_ERROR")
broken(
    "SETTINGS acknowledgement with a body",
    lambda raw: raw.send_bytes(4, 1, 0, b"\0\4\0\0\0\5"),
    "FRAME_SIZE_ERROR",
)
broken(
    "SETTINGS with a window beyond 2^31 - 1",
    lambda raw: raw.send_bytes(4, 0, 0, b"\0\4" + u32(1 << 31)),
    "FLOW_CONTROL_ERROR",
)
broken("SETTINGS with a frame size below 16384", lambda raw: raw.send_bytes(4, 0, 0, b"\0\5" + u32(16383)))
broken("SETTINGS with ENABLE_PUSH of 2", lambda raw: raw.send_bytes(4, 0, 0, b"\0\2" + u32(2)))
broken("PUSH_PROMISE from a client", lambda raw: raw.send_bytes(5, 4, 1, u32(2) + raw.encoder.encode(get())))
broken("PING on a stream", lambda raw: raw.send_bytes(6, 0, 1, b"12345678"))
broken("PING of 7 bytes", lambda raw: raw.send_bytes(6, 0, 0, b"1234567"), "FRAME_SIZE_ERROR")
broken("GOAWAY on a stream", lambda raw: raw.send_bytes(7, 0, 1, b"\0" * 8))
broken("WINDOW_UPDATE of 0 for the connection", lambda raw: raw.send_bytes(8, 0, 0, u32(0)))
broken("WINDOW_UPDATE of 3 bytes", lambda raw: raw.send_bytes(8, 0, 0, b"abc"), "FRAME_SIZE_ERROR")
broken("WINDOW_UPDATE on an idle stream", lambda raw: raw.send_bytes(8, 0, 7, u32(1)))
broken(
    "a connection window beyond 2^31 - 1",
    lambda raw: raw.send_bytes(8, 0, 0, u32((1 << 31) - 1)),
    "FLOW_CONTROL_ERROR",
)
broken(
    "a frame larger than allowed",
    lambda raw: (open_upload(raw), raw.send_bytes(0, 0, 1, b"a" * 20000)),
    "FRAME_SIZE_ERROR",
)
broken(
    "a head that is not HPACK",
    lambda raw: raw.send_bytes(1, 5, 1, b"\xff\xff\xff\xff\xff\xff\xff"),
    "COMPRESSION_ERROR",
)
broken("padding longer than the frame", lambda raw: (open_upload(raw), raw.send_bytes(0, 9, 1, b"\x05abc")))
broken("WINDOW_UPDATE of 0 for a stream", lambda raw: (open_upload(raw), raw.send_bytes(8, 0, 1, u32(0))))


@check("GOAWAY PROTOCOL_ERROR", "GOAWAY STREAM_CLOSED", "closed", "nothing")
def an_identifier_below_one_used_before():
    raw = Raw()
    raw.send(raw.headers(get(), stream=5))
    raw.outcome(5)
    raw.send(raw.headers(get(), stream=3), frames.PingFrame(0, b"12345678"))
    frame = raw.frame_of(frames.PingFrame, frames.GoAwayFrame, frames.HeadersFrame)
    if isinstance(frame, frames.PingFrame):
        return "nothing"
    return f"GOAWAY {ERRORS[frame.error_code]}" if isinstance(frame, frames.GoAwayFrame) else "closed"


@check("200", "RST_STREAM PROTOCOL_ERROR", "GOAWAY PROTOCOL_ERROR", "closed")
def a_stream_that_depends_on_itself():
    """An error in RFC 7540. RFC 9113 has no priorities any more."""
    raw = Raw()
    raw.send_bytes(2, 0, 1, u32(1) + b"\5")
    raw.send(raw.headers(get()))
    return raw.outcome()


@check(False)
def broken_preface():
    opened = connect()
    opened.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n" + b"x" * 100)
    received = b""
    try:
        while True:
            more = opened.recv(65536)
            if not more:
                break
            received += more
    except (ConnectionError, ssl.SSLError):
        pass
    return "HTTP/1.1 200" in received.decode("latin1")


failures = {}
for name, (function, accepted) in CHECKS.items():
    try:
        outcome = function()
    except Exception as error:  # What went wrong is the outcome.
        outcome = f"{type(error).__name__}: {error}"
    if outcome not in accepted:
        failures[name] = outcome
print(json.dumps({"checks": len(CHECKS), "failures": failures}))
