"""
Sessions of an HTTP/2 client, drawn from a seed. Debian's python3-h2 keeps the model of them: the states of streams, the windows
of both sides, the table of header fields. It raises an error for a frame of the gateway that the model does not allow.

Reads {"port", "sessions", "seed"} from standard input and writes what it counted and what went wrong.
"""
import json
import random
import select
import socket
import sys
import time

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.settings

ACTIONS = 80
MAX_OPEN = 20
SESSION_SECONDS = 60


def pattern(length):
    return (b"0123456789abcdef" * (length // 16 + 1))[:length]


class Session:
    def __init__(self, port, seed, counts):
        self.draw = random.Random(seed)
        self.counts = counts
        self.port = port
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.connection = h2.connection.H2Connection(
            h2.config.H2Configuration(client_side=True, header_encoding="utf-8")
        )
        self.uploads = {}  # stream: what is left to send, whether trailers end it
        self.expected = {}  # stream: the content of its response
        self.received = {}
        self.status = {}
        self.ended = set()
        self.left = set()  # streams that this client has reset
        self.acknowledged = False  # the first SETTINGS

    def run(self):
        window = self.draw.choice([0, 1, 100, 16_384, 65_535, 1_000_000])
        codes = h2.settings.SettingCodes
        self.connection.local_settings = h2.settings.Settings(
            client=True, initial_values={codes.INITIAL_WINDOW_SIZE: window, codes.ENABLE_PUSH: 0}
        )
        self.connection.initiate_connection()
        actions = [self.open] * 6 + [self.upload] * 6 + [self.widen] * 6 + [self.read] * 8
        actions += [self.resize, self.reset, self.ping, self.prioritize]
        for _ in range(ACTIONS):
            self.draw.choice(actions)()
        self.finish()

    def send(self):
        data = self.connection.data_to_send()
        if data:
            self.socket.sendall(data)

    def open(self):
        if len(self.pending()) >= MAX_OPEN:
            return
        stream = self.connection.get_next_available_stream_id()
        path, body, content = "/", None, b""
        length = self.draw.choice([0, 1, 100, 16_384, 16_385, 70_000, self.draw.randrange(200_000)])
        method = self.draw.choice(["GET", "GET", "HEAD", "POST", "POST"])
        if method == "POST":
            path, body, content = "/echo", pattern(length), pattern(length)
        else:
            path = "/bytes/%d" % length
            content = pattern(length) if method == "GET" else b""
        fields = [
            (":method", method),
            (":scheme", "http"),
            (":authority", "localhost:%d" % self.port),
            (":path", path),
        ]
        if body is not None and self.draw.random() < 0.5:
            fields.append(("content-length", str(length)))
        for i in range(self.draw.randrange(4)):
            fields.append(("x-%d" % self.draw.randrange(6), "v" * self.draw.choice([0, 1, 200, 800])))
        # More than a frame, in Huffman's code: the rest is in CONTINUATION.
        if self.draw.random() < 0.1:
            fields.append(("x-long", "".join(self.draw.choices("{}~^", k=10_000))))
        self.connection.send_headers(stream, fields, end_stream=body is None)
        self.send()
        if body is not None:
            self.uploads[stream] = [body, self.draw.random() < 0.3]
        self.expected[stream] = content
        self.received[stream] = bytearray()
        self.counts["requests"] += 1

    def upload(self):
        if not self.uploads:
            return
        stream = self.draw.choice(sorted(self.uploads))
        body, has_trailers = self.uploads[stream]
        window = self.connection.local_flow_control_window(stream)
        limit = min(window, self.connection.max_outbound_frame_size, len(body))
        if body and limit <= 0:
            return
        size = self.draw.choice([limit, self.draw.randrange(limit + 1)])
        # Padding takes from the windows, too.
        padding = self.draw.randrange(200) if self.draw.random() < 0.2 else None
        if padding is not None and size + padding + 1 > min(window, self.connection.max_outbound_frame_size):
            padding = None
        ends = size == len(body)
        self.connection.send_data(stream, body[:size], end_stream=ends and not has_trailers, pad_length=padding)
        if ends and has_trailers:
            self.connection.send_headers(stream, [("x-trailer", "t")], end_stream=True)
        self.send()
        if ends:
            del self.uploads[stream]
        else:
            self.uploads[stream][0] = body[size:]

    def widen(self):
        increment = self.draw.choice([1, 100, 16_384, 65_535, 500_000])
        streams = [None] + sorted(self.pending())
        self.increment(increment, self.draw.choice(streams))
        self.send()

    def increment(self, increment, stream):
        window = (
            self.connection.inbound_flow_control_window
            if stream is None
            else self.connection._get_stream_by_id(stream).inbound_flow_control_window
        )
        if window + increment < 2**31 - 1:
            self.connection.increment_flow_control_window(increment, stream)

    def resize(self):
        # The library takes the acknowledgement of the first SETTINGS for one of the second, if they are sent by then.
        if not self.acknowledged:
            return
        codes = h2.settings.SettingCodes
        self.connection.update_settings(
            {
                codes.INITIAL_WINDOW_SIZE: self.draw.choice([0, 1, 1_000, 65_535, 300_000]),
                codes.HEADER_TABLE_SIZE: self.draw.choice([0, 100, 4_096]),
            }
        )
        self.send()

    def reset(self):
        if not self.pending():
            return
        stream = self.draw.choice(sorted(self.pending()))
        self.connection.reset_stream(stream, h2.errors.ErrorCodes.CANCEL)
        self.uploads.pop(stream, None)
        self.left.add(stream)
        self.send()

    def ping(self):
        self.connection.ping(b"12345678")
        self.send()

    def prioritize(self):
        if self.pending():
            self.connection.prioritize(self.draw.choice(sorted(self.pending())), weight=self.draw.randint(1, 256))
            self.send()

    def pending(self):
        return set(self.expected) - self.ended - self.left

    def read(self, wait=0.002):
        if not select.select([self.socket], [], [], wait)[0]:
            return
        data = self.socket.recv(self.draw.choice([1, 9, 100, 65_536]))
        if not data:
            raise Exception("the gateway has closed the connection")
        for event in self.connection.receive_data(data):
            self.counts["events"] += 1
            self.take(event)
        self.send()

    def take(self, event):
        if isinstance(event, h2.events.ResponseReceived):
            self.status[event.stream_id] = dict(event.headers)[":status"]
        elif isinstance(event, h2.events.DataReceived):
            self.received[event.stream_id] += event.data
        elif isinstance(event, h2.events.StreamEnded):
            self.ended.add(event.stream_id)
            if event.stream_id not in self.left:
                self.check(event.stream_id)
        elif isinstance(event, h2.events.StreamReset) and event.remote_reset:
            # A response that is whole before its request may be followed by a reset that says so.
            if event.stream_id not in self.ended and event.stream_id not in self.left:
                raise Exception("stream %d was reset with %s" % (event.stream_id, event.error_code))
            self.uploads.pop(event.stream_id, None)
        elif isinstance(event, h2.events.SettingsAcknowledged):
            self.acknowledged = True
        elif isinstance(event, h2.events.ConnectionTerminated):
            raise Exception("GOAWAY %s %s" % (event.error_code, event.additional_data))

    def check(self, stream):
        if self.status[stream] != "200":
            raise Exception("status %s" % self.status[stream])
        if bytes(self.received[stream]) != self.expected[stream]:
            raise Exception(
                "stream %d: %d bytes, not %d, or others"
                % (stream, len(self.received[stream]), len(self.expected[stream]))
            )
        self.counts["responses"] += 1

    def finish(self):
        """Opens all windows and reads until every response is whole."""
        until = time.monotonic() + SESSION_SECONDS
        while self.uploads or self.pending():
            if time.monotonic() > until:
                raise Exception("never finished: %s, uploads %s" % (sorted(self.pending()), sorted(self.uploads)))
            if self.connection.inbound_flow_control_window < 100_000:
                self.increment(1_000_000, None)
            for stream in self.pending():
                if self.connection._get_stream_by_id(stream).inbound_flow_control_window < 100_000:
                    self.increment(300_000, stream)
            self.send()
            self.upload()
            self.read(0.01)
        self.connection.close_connection()
        self.send()
        self.socket.close()


def main():
    asked = json.load(sys.stdin)
    counts = {"sessions": 0, "requests": 0, "responses": 0, "events": 0}
    failures = []
    for i in range(asked["sessions"]):
        seed = asked["seed"] * 1_000_003 + i
        try:
            Session(asked["port"], seed, counts).run()
        except Exception as error:
            failures.append("session %d: %s: %s" % (i, type(error).__name__, error))
            if len(failures) == 5:
                break
        counts["sessions"] += 1
    json.dump({"counts": counts, "failures": failures}, sys.stdout)


main()
