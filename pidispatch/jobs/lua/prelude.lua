-- What all scripts share. ARGV[1] holds the bounds as JSON; what a script takes of its own begins at ARGV[2].
-- Keys are made here from the prefix: the queue's transport needs a single server anyway.
local bounds = cjson.decode(ARGV[1])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000) + bounds.offset

local function key(name) return bounds.prefix .. name end
local function row(id) return key('job:' .. id) end
local function lock(id) return key('job:lock:' .. id) end
local function queued(queue) return key('jobs:queued:' .. queue) end

-- Lua would write an instant with an exponent.
local function int(number) return string.format('%.0f', number) end

local function get(id, ...) return redis.call('HMGET', row(id), ...) end
local function set(id, ...) redis.call('HSET', row(id), ...) end
local function clear(id, ...) redis.call('HDEL', row(id), ...) end

local function ticket(id)
  local found = get(id, 'gen', 'queue', 'label')
  return {id, found[1], found[2], found[3]}
end

-- Why the caller may not touch the job; nil while it holds it. A lock that is gone with nobody else's name in the row
-- is still the caller's: the server was away.
local function refused(id, owner, gen)
  local found = get(id, 'state', 'owner', 'gen')
  if not found[1] then return 'unknown' end
  if found[1] ~= 'active' or found[2] ~= owner or found[3] ~= gen then return 'stale' end
  local held = redis.call('GET', lock(id))
  if held and held ~= owner then return 'stale' end
  return nil
end

local function cancel_stands(id)
  return redis.call('EXISTS', key('cancel:req:' .. id), key('cancel:ack:' .. id)) > 0
end

local function take_lease(id, owner)
  redis.call('SET', lock(id), owner, 'PX', int(bounds.lease))
  redis.call('ZADD', key('jobs:active'), int(now + bounds.lease), id)
end

local function drop_lease(id)
  redis.call('DEL', lock(id))
  redis.call('ZREM', key('jobs:active'), id)
  clear(id, 'owner')
end

-- Out of the index of a job that waits.
local function wake(id, queue)
  redis.call('ZREM', key('jobs:due'), id)
  redis.call('ZREM', queued(queue), id)
  clear(id, 'due', 'why')
end

local function put_in_queue(id, queue, published)
  set(id, 'state', 'queued', 'publishedAt', int(published))
  redis.call('ZADD', queued(queue), int(published), id)
end

-- A new generation, so that no earlier ticket counts.
local function put_to_sleep(id, delay, why)
  local gen = redis.call('HINCRBY', row(id), 'gen', 1)
  local due = int(now + delay)
  set(id, 'state', 'deferred', 'due', due, 'why', why, 'publishedAt', int(now))
  redis.call('ZADD', key('jobs:due'), due, id)
  return {'deferred', gen, due, int(delay)}
end

-- The last so many of a forge. `delivery` is JSON; what became of it stands beside it.
local function log_delivery(forge, delivery, verdict, job)
  redis.call('XADD', key('deliveries:' .. forge), 'MAXLEN', int(bounds.deliveries), '*',
    'delivery', delivery, 'verdict', verdict, 'job', job)
end

-- A rule that fires once is spent by every record of a job of it, and by the first of all.
local function spend_rule(id)
  local rule = get(id, 'oneshot')[1]
  if rule then redis.call('SET', key('oneshot:' .. rule), cjson.encode({at = int(now), jobId = id}), 'NX') end
end

-- Runs of one trigger that came to nothing, one after the other, pause it. `said` is 'bad', 'good', or '' for neither.
local function judge_trigger(id, said, reason)
  local found = get(id, 'breaker', 'label', 'createdAt')
  local breaker = found[1]
  if not breaker or said == '' or bounds.breaker == 0 then return end
  -- What was handed in before an operator lifted the pause says nothing of what was mended since.
  local since = redis.call('GET', key('trigger:resumed:' .. breaker))
  if since and tonumber(found[3]) < tonumber(since) then return end
  local runs = key('trigger:runs:' .. breaker)
  if said == 'good' then
    redis.call('DEL', runs)
    return
  end
  local count = redis.call('INCR', runs)
  redis.call('PEXPIRE', runs, int(bounds.runs))
  if count < bounds.breaker then return end
  local why = cjson.encode({at = int(now), runs = int(count), jobId = id, reason = reason, label = found[2]})
  if redis.call('SET', key('trigger:paused:' .. breaker), why, 'NX') then
    redis.call('SADD', key('triggers:paused'), breaker)
    -- One worker tells of it, once.
    redis.call('RPUSH', key('triggers:tripped'), breaker)
  end
end

local function owe_record(id, attempt)
  spend_rule(id)
  set(id, 'recorded', '0', 'recordAttempt', attempt)
  redis.call('ZADD', key('jobs:unrecorded'), int(now), id)
end

local function keep_record(id, record, attempt)
  set(id, 'record', record)
  owe_record(id, attempt)
end

-- Counts are taken out of counters that are still there, and out of none below nothing.
local function take_back(charged)
  for name, amount in pairs(charged) do
    local there = tonumber(redis.call('GET', key(name)) or '0')
    if there > 0 then redis.call('DECRBY', key(name), int(math.min(there, amount))) end
  end
end

-- What an attempt was counted for, where it cost nothing after all. From the row: the window may be another one by now.
local function give_back(id)
  local charged = get(id, 'charged')[1]
  -- First of all, so that it happens once, also where a counter cannot be read.
  clear(id, 'charged', 'verdict')
  if charged then take_back(cjson.decode(charged)) end
end

-- For the one who waits, who may see more than a record holds. Also of a job whose row is gone: it ran.
local function tell_waiting(id, telling)
  if telling ~= '' then redis.call('SET', key('job:told:' .. id), telling, 'PX', int(bounds.told)) end
end

-- The terminal state, once no index of a living job holds it any more. `said`: what it says of its trigger.
local function end_job(id, state, reason, cause, said)
  judge_trigger(id, said, reason)
  set(id, 'state', state, 'finishedAt', int(now))
  if reason ~= '' then set(id, 'reason', reason) end
  if cause ~= '' then set(id, 'cause', cause) end
  if state == 'failed' then redis.call('ZADD', key('jobs:failed'), int(now), id) end
  local keep = bounds.keep[get(id, 'kind')[1]] or bounds.keep['local']
  -- At least: until its record is written the row alone holds it.
  redis.call('PEXPIRE', row(id), int(math.max(keep.failed_ms, keep.done_ms)))
  redis.call('DEL', key('cancel:req:' .. id))
end

-- The end of an active job whose worker is gone: its record is made from the row by whoever writes it.
local function end_without_worker(id, state, reason)
  local found = get(id, 'record', 'attempt', 'owner')
  if found[1] then
    set(id, 'previous', found[1])
    clear(id, 'record')
  end
  if found[3] then set(id, 'lostOwner', found[3]) end
  drop_lease(id)
  owe_record(id, found[2])
  end_job(id, state, reason, '', state == 'failed' and 'bad' or '')
end

-- An active job whose worker is gone before it spent anything: queued again, unless that has happened too often.
local function lose_unspent(id)
  local lost = redis.call('HINCRBY', row(id), 'lost', 1)
  give_back(id)
  clear(id, 'spendFrom')
  if cancel_stands(id) then
    end_without_worker(id, 'cancelled', 'operator-cancel')
    return 'cancelled'
  end
  if lost > bounds.requeues then
    end_without_worker(id, 'failed', 'worker-lost')
    return 'failed'
  end
  drop_lease(id)
  redis.call('HINCRBY', row(id), 'gen', 1)
  put_in_queue(id, get(id, 'queue')[1], now)
  return 'queued'
end

