-- The balances of every tenant on the day of `now`. Answers: none.
local touched, prefix = {}, whole(window) .. ':'

for _, name in ipairs(redis.call('HKEYS', LEDGER)) do
  if string.sub(name, 1, #prefix) == prefix then
    local tenant = string.match(name, '^%d+:(.*):[rs]$')
    if tenant ~= ALL then table.insert(touched, tenant) end
  end
end
return reply({}, touched)
