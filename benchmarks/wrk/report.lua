-- What every script shares: it counts wrong answers, keeps the first one, and prints one line of JSON at the end.
-- A script sets the global `expect(status, body)`, which returns what is wrong with an answer, or nil.

local threads = {}

function setup(thread)
  table.insert(threads, thread)
  thread:set("number", #threads)
end

wrong = 0
first_wrong = ""

function note_wrong(what, status, body)
  wrong = wrong + 1
  if first_wrong == "" then
    first_wrong = what .. ": " .. status .. " " .. body:sub(1, 300)
  end
end

-- Text for JSON: whatever a wrong answer holds must not break the line that tells of it.
local function quoted(text)
  return '"' .. text:gsub("[^%w%p ]", "?"):gsub('[\\"]', "\\%0") .. '"'
end

function done(summary, latency, requests)
  local count, first = 0, ""
  local cycles = {}
  for _, thread in ipairs(threads) do
    count = count + thread:get("wrong")
    if first == "" then first = thread:get("first_wrong") end
    for microseconds in (thread:get("cycles") or ""):gmatch("%d+") do
      table.insert(cycles, tonumber(microseconds))
    end
  end
  table.sort(cycles)
  local errors = summary.errors
  io.write(string.format(
    '\nRESULT {"requests": %d, "microseconds": %d, "p50": %d, "p99": %d, "wrong": %d, "first_wrong": %s, '
      .. '"connection_errors": %d, "cycles": %d, "cycle_p99": %d}\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99), count, quoted(first),
    errors.connect + errors.read + errors.write + errors.timeout,
    #cycles, cycles[math.ceil(#cycles * 0.99)] or 0
  ))
end

headers = { ["Content-Type"] = "application/json" }

-- Read the lines of a file that Python wrote: "project_id session_token", or "project_id" alone.
function read_pool(path)
  local pool = {}
  for line in io.lines(path) do
    local project_id, token = line:match("^(%S+) ?(%S*)$")
    table.insert(pool, { project_id = project_id, token = token })
  end
  return pool
end
