-- Whole sign-ins: create, poll while pending, open and confirm, poll once confirmed: wrk -tN -cN -s … URL -- PROJECTS_FILE
-- A thread of wrk has its own Lua state, so with one connection a thread the next step is known: give as many threads
-- as connections. Every 50th sign-in is polled once more, outside of its time: it must be used by then.

dofile("benchmarks/wrk/report.lua")

local ffi = require("ffi")
ffi.cdef [[
  typedef struct { long seconds; long nanoseconds; } bench_time;
  int clock_gettime(int clock, bench_time *now);
]]
local CLOCK_MONOTONIC = 1
local now = ffi.new("bench_time")

local function microseconds()
  ffi.C.clock_gettime(CLOCK_MONOTONIC, now)
  return tonumber(now.seconds) * 1e6 + math.floor(tonumber(now.nanoseconds) / 1e3)
end

cycles = "" -- Microseconds of each sign-in, for `done`, which sees only the globals of a thread.

local project_ids, place = {}, 0
local step, project_id, token, messenger_id, started
local finished = 0

function init(arguments)
  for _, project in ipairs(read_pool(arguments[1])) do
    table.insert(project_ids, project.project_id)
  end
  place = number -- Each thread begins with another project.
end

local function restart()
  step = "create"
  place = place % #project_ids + 1
  project_id = project_ids[place]
  started = nil
end

-- wrk asks for one request more than it sends, at the start: only `response` may move a sign-in on.
function request()
  if not step then restart() end
  if step == "create" then
    started = microseconds()
    return wrk.format("POST", "/api/v1/generate/public", headers, string.format('{"project_id":"%s"}', project_id))
  elseif step == "decide" then
    return wrk.format("POST", "/bench/decide", headers, string.format('{"session_token":"%s"}', token))
  end
  local body = string.format('{"project_id":"%s","session_token":"%s"}', project_id, token)
  return wrk.format("POST", "/api/v1/verify/public", headers, body)
end

local function check(status, body)
  if status ~= 200 then return false end
  if step == "create" then
    token = body:match('"session_token": ?"([%w_-]+)"')
    return token and #token == 43
  elseif step == "decide" then
    messenger_id = body:match('"messenger_id": ?"(%d+)"')
    return messenger_id ~= nil
  elseif step == "confirmed" then
    return body:find('"status": ?"confirmed"') and body:match('"messenger_id": ?"(%d+)"') == messenger_id
      and body:find('"proof": ?"[%w_-]+%.[%w_-]+%.[%w_-]+"')
  end
  return body:find('^{"status": ?"' .. step .. '"}$')
end

local NEXT = { create = "pending", pending = "decide", decide = "confirmed" }

function response(status, _, body)
  if not check(status, body) then
    note_wrong(step, status, body)
    restart()
  elseif step == "confirmed" then
    cycles = cycles .. (microseconds() - started) .. " "
    finished = finished + 1
    if finished % 50 == 0 then step = "used" else restart() end
  elseif step == "used" then
    restart()
  else
    step = NEXT[step]
  end
end
