-- Polls pending sessions, one after the other from a pool: wrk -s benchmarks/wrk/poll.lua URL -- POOL_FILE
-- The bare app gets exactly the same requests, and its constant answer is checked the same way.

dofile("benchmarks/wrk/report.lua")

local requests, place = {}, 0

function init(arguments)
  for _, session in ipairs(read_pool(arguments[1])) do
    local body = string.format('{"project_id":"%s","session_token":"%s"}', session.project_id, session.token)
    table.insert(requests, wrk.format("POST", "/api/v1/verify/public", headers, body))
  end
end

function request()
  place = place % #requests + 1
  return requests[place]
end

function response(status, _, body)
  if status ~= 200 or not body:find('^{"status": ?"pending"}$') then
    note_wrong("poll", status, body)
  end
end
