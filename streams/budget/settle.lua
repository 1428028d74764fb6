-- ARGV from the 4th, by twos: the payment's key, what it cost. Answers: what each cost beyond its bound.
local answers, touched = {}, {}

local function settle(payment, actual)
  if payment.state == 'begun' then
    add(payment, -payment.amount, actual)
  elseif payment.state == 'unknown' or actual < payment.amount then
    add(payment, 0, actual - payment.amount)
  else
    return false
  end
  payment.state, payment.amount = 'settled', actual
  return true
end

for i = 4, #ARGV, 2 do
  local payment, actual = get(ARGV[i]), tonumber(ARGV[i + 1])
  local over = 0
  if payment then
    if payment.state ~= 'settled' then over = math.max(0, actual - payment.amount) end
    if settle(payment, actual) then put(ARGV[i], payment) end
    table.insert(touched, payment.tenant)
  end
  table.insert(answers, over)
end
return reply(answers, touched)
