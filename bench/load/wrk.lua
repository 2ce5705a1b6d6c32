-- Asks for what a file lists, one request a line: method, path and body, separated by tabs.
local requests, last, number = {}, 0, 0

function init(args)
  for line in io.lines(args[1]) do
    local method, path, body = line:match("^(%u+)\t([^\t]+)\t(.*)$")
    local headers = nil
    if body == "" then body = nil else headers = { ["Content-Type"] = "application/json" } end
    last = last + 1
    requests[last] = wrk.format(method, path, headers, body)
  end
end

function request()
  number = number % last + 1
  return requests[number]
end

function done(summary, latency)
  local errors = summary.errors
  local broken = errors.connect + errors.read + errors.write + errors.timeout
  io.write(string.format('{"requests":%d,"seconds":%.6f,"p50":%.3f,"p99":%.3f,"refused":%d,"broken":%d}\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
    errors.status, broken))
end
