-- ARGV from the 4th, by sixes: keys of holding and payment, tenant, cost, expires, the tenant's ceiling.
-- Answers: why.
local answers, touched = {}, {}

local function anew(holding, key, payment_key, tenant, cost, expires, own_limit)
  local why = refusal(cost, window, tenant, own_limit)
  if why then return why end
  if not holding then put(key, fresh('used', tenant, 0, expires)) end
  local payment = fresh('begun', tenant, cost, expires)
  put(payment_key, payment)
  add(payment, cost, 0)
  return 'granted'
end

local function begin(key, payment_key, tenant, cost, expires, own_limit)
  local payment = get(payment_key)
  if payment then return payment.state == 'begun' and 'granted' or 'again' end
  if expires <= now then return 'late' end
  local holding = holding_at(key)
  if holding and holding.state == 'released' then return 'released' end
  if holding and holding.tenant ~= tenant then return 'tenant' end
  if not holding or holding.state == 'used' then
    return anew(holding, key, payment_key, tenant, cost, expires, own_limit)
  end
  local more = math.max(0, cost - holding.amount)
  local why = refusal(more, holding.window, tenant, own_limit)
  if why then return why end
  put(payment_key, {
    state = 'begun', tenant = tenant, window = holding.window, amount = holding.amount + more,
    due = math.max(holding.due, math.min(expires, kept_until(holding.window)))
  })
  add(holding, more, 0)
  holding.state, holding.amount = 'used', 0
  put(key, holding)
  return 'granted'
end

for i = 4, #ARGV, 6 do
  local cost, expires = tonumber(ARGV[i + 3]), tonumber(ARGV[i + 4])
  table.insert(answers, begin(ARGV[i], ARGV[i + 1], ARGV[i + 2], cost, expires, ARGV[i + 5]))
  table.insert(touched, ARGV[i + 2])
end
return reply(answers, touched)
