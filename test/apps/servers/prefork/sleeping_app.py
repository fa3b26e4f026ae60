import time
from urllib.parse import parse_qs


def app(environ, start_response):
    """Takes as long as `ms` says."""
    time.sleep(int(parse_qs(environ.get("QUERY_STRING", "")).get("ms", ["0"])[0]) / 1000)
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "2")])
    return [b"ok"]
