-- ARGV from the 4th, by fives: the holding's key, tenant, cost, expires, the tenant's ceiling. Answers: why.
local answers, touched = {}, {}

local function reserve(key, tenant, cost, expires, own_limit)
  if expires <= now then return 'late' end
  local holding = holding_at(key)
  if not holding then
    local why = refusal(cost, window, tenant, own_limit)
    if why then return why end
    holding = fresh('reserved', tenant, cost, expires)
    put(key, holding)
    add(holding, cost, 0)
    return 'granted'
  end
  if holding.state == 'released' then return 'released' end
  if holding.tenant ~= tenant then return 'tenant' end
  local more = cost - holding.amount
  if holding.state == 'used' or more <= 0 then return 'granted' end
  local why = refusal(more, holding.window, tenant, own_limit)
  if why then return why end
  holding.amount = cost
  put(key, holding)
  add(holding, more, 0)
  return 'granted'
end

for i = 4, #ARGV, 5 do
  table.insert(answers, reserve(ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 2]), tonumber(ARGV[i + 3]), ARGV[i + 4]))
  table.insert(touched, ARGV[i + 1])
end
return reply(answers, touched)
