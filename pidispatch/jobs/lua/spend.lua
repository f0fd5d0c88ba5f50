-- spend(id, owner, gen, ask): from here on the attempt may cost something, unless a cap stands against it.
-- All of it or nothing: whoever is killed in between leaves no count without an attempt, and no attempt without one.
local id, owner, gen, asked = unpack(ARGV, 2)
local answer = refused(id, owner, gen)
if answer == 'stale' then return {answer} end
-- Without its row the job is counted all the same: the caps hold whatever the server has forgotten.
local known = not answer

-- Asked again because the answer was lost: it is the same one, and counts nothing.
local before = known and get(id, 'verdict')[1]
if before then
  local of, text = string.match(before, '^(%d+) (.*)$')
  if of == gen then
    take_lease(id, owner)
    return {'won', text}
  end
end

local ask = cjson.decode(asked)
-- A script that fails is not undone: whatever could make this one fail is looked at before anything is counted.
for _, ledger in ipairs(ask.ledgers) do
  for _, counter in ipairs(ledger.counters) do
    local there = redis.call('GET', key(counter.key))
    if there and not string.match(there, '^%d+$') then
      return redis.error_reply('COUNTER ' .. counter.key .. ' holds no number')
    end
  end
end
local function verdict(found)
  found.known = known
  local text = cjson.encode(found)
  if not known then return {'won', text} end
  set(id, 'verdict', gen .. ' ' .. text)
  if next(found.charged) then set(id, 'charged', cjson.encode(found.charged)) end
  if found.kind == 'reserved' then redis.call('HSETNX', row(id), 'spendFrom', int(now)) end
  take_lease(id, owner)
  return {'won', text}
end

-- A rule that fires once is its first job's from here on: another one that was let in before finds the mark.
local rule = known and get(id, 'oneshot')[1]
local mark = rule and redis.call('GET', key('oneshot:' .. rule))
if mark then
  local read, said = pcall(cjson.decode, mark)
  local by = read and type(said) == 'table' and said.jobId
  if type(by) == 'string' and by ~= id then
    return verdict({kind = 'once', ledger = -1, window = '', amount = 0, cap = 0, charged = {}})
  end
end

if type(ask.tokens) == 'table' then
  local spent = tonumber(redis.call('GET', key(ask.tokens.key)) or '0')
  if spent >= ask.tokens.cap then
    return verdict({kind = 'tokens', ledger = -1, window = '', amount = spent, cap = ask.tokens.cap, charged = {}})
  end
end

-- Counted first and judged then, all windows of a ledger alike: a try that is refused counts.
local function count(ledger, charged)
  local found
  for _, counter in ipairs(ledger.counters) do
    local name = key(counter.key)
    local amount = redis.call('INCR', name)
    -- Once: a busy window must not put off its own end.
    if amount == 1 then redis.call('PEXPIRE', name, int(counter.ttlMs)) end
    charged[counter.key] = 1
    local kind
    if amount > counter.cap then
      kind = 'over'
    elseif type(ledger.softPct) == 'number' and amount > math.floor(counter.cap * ledger.softPct / 100) then
      kind = 'soft'
    end
    if kind and (not found or (kind == 'over' and found.kind == 'soft')) then
      found = {kind = kind, window = counter.window, amount = amount, cap = counter.cap}
    end
  end
  return found
end

local charged = {}
for at, ledger in ipairs(ask.ledgers) do
  local own = {}
  local found = count(ledger, own)
  if found then
    -- A ledger that did not refuse gives back, the last first.
    take_back(charged)
    found.ledger, found.charged = at - 1, own
    return verdict(found)
  end
  for name, amount in pairs(own) do charged[name] = amount end
end
if known then spend_rule(id) end
return verdict({kind = 'reserved', charged = charged})
