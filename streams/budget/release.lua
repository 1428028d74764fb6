-- ARGV from the 4th: keys of holdings. Answers: none.
local touched = {}

for i = 4, #ARGV do
  local holding = get(ARGV[i])
  if holding and (holding.state == 'reserved' or holding.state == 'used') then
    add(holding, -holding.amount, 0)
    holding.state, holding.amount = 'released', 0
    put(ARGV[i], holding)
    table.insert(touched, holding.tenant)
  end
end
return reply({}, touched)
