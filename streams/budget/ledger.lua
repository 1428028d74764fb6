-- The ledger on Redis: what every operation begins with. It says the same as ledger.py.
-- KEYS: the ledger (a hash: epoch, latest day, sums), its entries (a hash), when they lapse (a sorted set).
-- ARGV: now in ms, the epoch to open a missing ledger with ('' to open none), the ceiling of all ('' for none).
-- Money is in millionths. An entry is `state|tenant|window|amount|due`.
local LEDGER, ENTRIES, DUE = KEYS[1], KEYS[2], KEYS[3]
local DAY, MOST, SWEEP, ALL = 86400000, 9007199254740991, 1000, '*'
local now, total_limit = tonumber(ARGV[1]), tonumber(ARGV[3]) or MOST

local epoch = redis.call('HGET', LEDGER, 'epoch')
if not epoch then
  if ARGV[2] == '' then return {false} end
  epoch = ARGV[2]
  redis.call('HSET', LEDGER, 'epoch', epoch)
end

local latest = tonumber(redis.call('HGET', LEDGER, 'latest') or 0)
local window = math.max(math.floor(now / DAY), latest - 1)
if window > latest then
  latest = window
  redis.call('HSET', LEDGER, 'latest', latest)
  for _, name in ipairs(redis.call('HKEYS', LEDGER)) do
    local at = tonumber(string.match(name, '^(%d+):'))
    if at and at < latest - 1 then redis.call('HDEL', LEDGER, name) end
  end
end

local function get(key)
  local packed = redis.call('HGET', ENTRIES, key)
  if not packed then return nil end
  local state, tenant, at, amount, due = string.match(packed, '^(%a+)|([^|]*)|(%d+)|(%d+)|(%d+)$')
  return {
    state = state, tenant = tenant, window = tonumber(at), amount = tonumber(amount), due = tonumber(due)
  }
end

-- A holding whose day is closed counts for nothing.
local function holding_at(key)
  local found = get(key)
  if found and found.window < latest - 1 then return nil end
  return found
end

local function whole(number) return string.format('%.0f', number) end

local function put(key, entry)
  local packed = {entry.state, entry.tenant, whole(entry.window), whole(entry.amount), whole(entry.due)}
  redis.call('HSET', ENTRIES, key, table.concat(packed, '|'))
  redis.call('ZADD', DUE, whole(entry.due), key)
end

local function drop(key)
  redis.call('HDEL', ENTRIES, key)
  redis.call('ZREM', DUE, key)
end

local function field(at, tenant, kind) return whole(at) .. ':' .. tenant .. ':' .. kind end

-- Sums are read once and written once a call: a batch mostly adds to the same ones.
local known, changed = {}, {}

local function sum(name)
  if not known[name] then known[name] = tonumber(redis.call('HGET', LEDGER, name) or 0) end
  return known[name]
end

local function raise(name, by)
  if by == 0 then return end
  known[name] = sum(name) + by
  changed[name] = true
end

local function add(entry, reserved, spent)
  if entry.window < latest - 1 then return end
  for _, tenant in ipairs({ALL, entry.tenant}) do
    raise(field(entry.window, tenant, 'r'), reserved)
    raise(field(entry.window, tenant, 's'), spent)
  end
end

local function sums(at, tenant) return sum(field(at, tenant, 'r')), sum(field(at, tenant, 's')) end

local function kept_until(at) return (at + 2) * DAY end

-- Why a window has no room for `cost`; nil where it has.
local function refusal(cost, at, tenant, own_limit)
  if cost <= 0 then return nil end
  local reserved, spent = sums(at, ALL)
  local total = total_limit
  if total < MOST then total = total - reserved - spent end
  local own = tonumber(own_limit) or MOST
  if own < MOST then
    reserved, spent = sums(at, tenant)
    own = own - reserved - spent
  end
  if cost <= math.min(total, own) then return nil end
  return total <= own and 'total' or 'tenant'
end

local function fresh(state, tenant, amount, expires)
  return {
    state = state, tenant = tenant, window = window, amount = amount,
    due = math.min(expires, kept_until(window))
  }
end

for _, key in ipairs(redis.call('ZRANGEBYSCORE', DUE, '-inf', whole(now), 'LIMIT', 0, SWEEP)) do
  local entry = get(key)
  if entry and entry.state == 'begun' then
    add(entry, -entry.amount, entry.amount)
    entry.state, entry.due = 'unknown', kept_until(entry.window)
    put(key, entry)
  else
    if entry and entry.state == 'reserved' then add(entry, -entry.amount, 0) end
    drop(key)
  end
end

-- The reply of every operation: epoch, day, its answers, and (tenant, reserved, spent) of all and of `touched`.
local function reply(answers, touched)
  for name in pairs(changed) do redis.call('HSET', LEDGER, name, whole(known[name])) end
  redis.call('PEXPIRE', ENTRIES, whole(kept_until(latest) - now))
  redis.call('PEXPIRE', DUE, whole(kept_until(latest) - now))
  local balances, told = {}, {}
  table.insert(touched, 1, ALL)
  for _, tenant in ipairs(touched) do
    if not told[tenant] then
      told[tenant] = true
      local reserved, spent = sums(window, tenant)
      table.insert(balances, tenant)
      table.insert(balances, whole(reserved))
      table.insert(balances, whole(spent))
    end
  end
  return {epoch, window, answers, balances}
end
