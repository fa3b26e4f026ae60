-- Every request comes from another client, as a trusted proxy would tell it: 65,536 addresses in turn.
local requests = {}

function init()
  local format, path = wrk.format, wrk.path
  for i = 0, 65535 do
    local address = string.format("10.1.%d.%d", math.floor(i / 256), i % 256)
    requests[i] = format("GET", path, { ["Host"] = wrk.headers["Host"], ["X-Forwarded-For"] = address })
  end
end

local next = 0

function request()
  next = (next + 1) % 65536
  return requests[next]
end
