"""A link as it is between continents: small segments, small buffers, and so many bytes a second.

Relays connections from a port of its own, which it prints, to a port of 127.0.0.1. The replies are read slowly:
Node cannot bound the buffers of a socket, and those of loopback hold megabytes.

usage: wan_link.py PORT BYTES_PER_SECOND
"""

import socket
import sys
import threading
import time

PIECE = 4096


def carry(source, target, bytes_per_second):
    try:
        while True:
            piece = source.recv(PIECE)
            if not piece:
                break
            target.sendall(piece)
            if bytes_per_second:
                time.sleep(len(piece) / bytes_per_second)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        for side in (source, target):
            try:
                side.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def relay(client, port, bytes_per_second):
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2 * PIECE)
    server.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 1400)
    server.connect(("127.0.0.1", port))
    threading.Thread(target=carry, args=(client, server, 0), daemon=True).start()
    carry(server, client, bytes_per_second)


listener = socket.create_server(("127.0.0.1", 0), backlog=200)
print(listener.getsockname()[1], flush=True)
while True:
    accepted, _ = listener.accept()
    arguments = (accepted, int(sys.argv[1]), int(sys.argv[2]))
    threading.Thread(target=relay, args=arguments, daemon=True).start()
