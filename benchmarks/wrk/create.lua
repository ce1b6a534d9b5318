-- Creates sessions, for each project in turn: wrk -s benchmarks/wrk/create.lua URL -- PROJECTS_FILE

dofile("benchmarks/wrk/report.lua")

local requests, place = {}, 0

function init(arguments)
  for _, project in ipairs(read_pool(arguments[1])) do
    local body = string.format('{"project_id":"%s"}', project.project_id)
    table.insert(requests, wrk.format("POST", "/api/v1/generate/public", headers, body))
  end
end

function request()
  place = place % #requests + 1
  return requests[place]
end

function response(status, _, body)
  local token = body:match('"session_token": ?"([%w_-]+)"')
  local link = body:match('"deeplink": ?"https://[^"]+%?start=([%w_-]+)"')
  if status ~= 200 or not token or #token ~= 43 or link ~= token or not body:find('"expires_at": ?"%d+%-[%d:.T-]+Z"') then
    note_wrong("create", status, body)
  end
end
