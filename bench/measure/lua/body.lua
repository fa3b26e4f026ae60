-- 64 KiB up; the backend answers with as much.
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/octet-stream"
wrk.body = string.rep("b", 65536)
