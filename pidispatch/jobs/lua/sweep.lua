-- sweep(rest)
local rest = ARGV[2]
local lost, requeued, published, unrecorded = {}, {}, {}, {}
local function oldest(index, before, count)
  return redis.call('ZRANGEBYSCORE', index, '-inf', int(before), 'LIMIT', 0, int(count))
end

-- A job that slept past its instant waits in its queue, whether its ticket lies there or is lost. Its stamp is such
-- that a lost one is missed at once.
local due = key('jobs:due')
for _, id in ipairs(oldest(due, now - bounds.overdue, bounds.batch)) do
  local found = get(id, 'queue', 'due')
  if found[1] and found[2] then
    wake(id, found[1])
    put_in_queue(id, found[1], found[2] + bounds.overdue - bounds.unclaimed)
  else
    redis.call('ZREM', due, id)
  end
end

-- Tickets that are missing: as many as the queue's list is shorter than the number of jobs in it. By age alone a
-- backlog would breed tickets.
local left = bounds.batch
for _, queue in ipairs(redis.call('SMEMBERS', key('queues'))) do
  local index = queued(queue)
  local missing = redis.call('ZCARD', index) - redis.call('LLEN', key(queue))
  if missing > 0 then
    for _, id in ipairs(oldest(index, now - bounds.unclaimed, math.min(missing, left))) do
      left = left - 1
      if redis.call('EXISTS', row(id)) == 1 then
        put_in_queue(id, queue, now)
        published[#published + 1] = ticket(id)
      else
        redis.call('ZREM', index, id)
      end
    end
  end
end

-- Once the server has been up for less than a lease, nobody could renew one. Nor could anybody while it hung, of which
-- its uptime knows nothing: then no sweep has come for longer than they are apart, and this one may have waited, too.
local function rested()
  if rest == '0' then return true end
  local last, since = unpack(redis.call('HMGET', key('swept'), 'last', 'since'))
  if not last or now - last > bounds.silence then since = int(now) end
  redis.call('HSET', key('swept'), 'last', int(now), 'since', since)
  local up = string.match(redis.call('INFO', 'server'), 'uptime_in_seconds:(%d+)')
  return up * 1000 > bounds.rest and now - since > bounds.rest
end

-- Jobs whose lease ran out. After the tickets: one that is queued again here has none in the list yet.
local active = key('jobs:active')
for _, id in ipairs(rested() and oldest(active, now, bounds.batch) or {}) do
  local found = get(id, 'state', 'spendFrom')
  if found[1] ~= 'active' then
    redis.call('ZREM', active, id)
  elseif found[2] then
    if redis.call('EXISTS', key('cancel:ack:' .. id)) == 1 then
      -- An operator was told that it is cancelled, so that is how it ended.
      end_without_worker(id, 'completed', 'operator-cancel')
    else
      end_without_worker(id, 'failed', 'worker-lost')
    end
    lost[#lost + 1] = id
  else
    local now_is = lose_unspent(id)
    if now_is == 'queued' then
      requeued[#requeued + 1] = ticket(id)
    elseif now_is == 'failed' then
      lost[#lost + 1] = id
    end
  end
end

-- Records that nobody wrote. The stamp keeps the next pass, and other workers, from doing the same.
local unwritten = key('jobs:unrecorded')
for _, id in ipairs(oldest(unwritten, now - bounds.unrecorded, bounds.batch)) do
  if redis.call('EXISTS', row(id)) == 1 then
    redis.call('ZADD', unwritten, int(now), id)
    unrecorded[#unrecorded + 1] = id
  else
    redis.call('ZREM', unwritten, id)
  end
end

-- Failed jobs whose row is gone.
local failed, shortest = key('jobs:failed'), math.huge
for _, keep in pairs(bounds.keep) do shortest = math.min(shortest, keep.failed_ms) end
for _, id in ipairs(oldest(failed, now - shortest, bounds.batch)) do
  if redis.call('EXISTS', row(id)) == 0 then redis.call('ZREM', failed, id) end
end
return {lost, requeued, published, unrecorded}
