-- Sends what a file lists, one request a line: method, path, body, key ("new" or nothing), "settles" or nothing, and
-- "refused" or nothing, separated by tabs. What is filled in while a request is sent is that of `known-orders.ts`. The other
-- arguments are the beginning of all keys, and how many orders stay younger than one that is settled.
local ORDER_ID = "{orderId}"
local requests, last, number = {}, 0, 0
local open, oldest, newest = {}, 1, 0
local prefix, spare, keys = "", 0, 0
-- Read by `done`: requests that must be refused, and answers that say so.
refusable, refused = 0, 0

-- The text of a request in two parts, between which its key or the id of an order is filled in.
local function split(text, mark)
  local from, to = text:find(mark, 1, true)
  if not from then return text end
  return text:sub(1, from - 1), text:sub(to + 1)
end

function init(args)
  prefix, spare = args[2], tonumber(args[3])
  for line in io.lines(args[1]) do
    local method, path, body, key, settles, isRefused = line:match("^(%u+)\t([^\t]+)\t([^\t]*)\t(%a*)\t(%a*)\t(%a*)$")
    local headers = {}
    if body == "" then body = nil else headers["Content-Type"] = "application/json" end
    if key ~= "" then headers["Idempotency-Key"] = "{key}" end
    local text = wrk.format(method, path, headers, body)
    local one = { isKeyed = key ~= "", settles = settles ~= "", isRefused = isRefused ~= "" }
    one.before, one.after = split(text, one.isKeyed and "{key}" or ORDER_ID)
    if one.after then response = note end
    last = last + 1
    requests[last] = one
  end
end

-- What stands between the two parts; nothing if no order is known.
local function filling(one)
  if one.isKeyed then
    keys = keys + 1
    return prefix .. "-" .. keys
  end
  if not one.settles then return open[newest] end
  if newest - oldest < spare then return nil end
  oldest = oldest + 1
  local id = open[oldest - 1]
  open[oldest - 1] = nil
  return id
end

function request()
  while true do
    number = number % last + 1
    local one = requests[number]
    if one.isRefused then refusable = refusable + 1 end
    if not one.after then return one.before end
    local value = filling(one)
    if value then return one.before .. value .. one.after end
  end
end

-- Only for a list that has something to fill in: with a function for answers wrk takes longer.
function note(status, _, body)
  if status == 201 then
    newest = newest + 1
    open[newest] = body:match('"id":%s*(%d+)')
  elseif status == 409 then
    refused = refused + 1
  end
end

local threads = {}
function setup(thread) table.insert(threads, thread) end

function done(summary, latency)
  local errors = summary.errors
  local broken = errors.connect + errors.read + errors.write + errors.timeout
  local meant = 0
  for _, thread in ipairs(threads) do meant = meant + math.min(thread:get("refusable"), thread:get("refused")) end
  io.write(string.format('{"requests":%d,"seconds":%.6f,"p50":%.3f,"p99":%.3f,"refused":%d,"broken":%d}\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
    errors.status - meant, broken))
end
