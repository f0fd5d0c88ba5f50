-- submit(id, data, queue, label, kind, maxAttempts, dedupKey or '', oneshot or '', breaker or '', heed, delivery or '',
-- sibling or '')
local id, data, queue, label, kind, attempts, semantic, oneshot, breaker, heed, delivery, sibling = unpack(ARGV, 2)

-- What became of it, also for the log of deliveries: with the job that is made or stands in its place.
local function told(status, job)
  if delivery ~= '' then log_delivery(kind, delivery, status, job) end
  return {status, job}
end

if redis.call('EXISTS', row(id)) == 1 then return told('duplicate', id) end
-- The same delivery, before its rule was edited to have replicas, or none.
if sibling ~= '' and redis.call('EXISTS', row(sibling)) == 1 then return told('duplicate', sibling) end
if heed == '1' and breaker ~= '' and redis.call('EXISTS', key('trigger:paused:' .. breaker)) == 1 then
  return told('trigger-paused', '')
end
-- Told to nobody: another rule may take the event.
if oneshot ~= '' and redis.call('EXISTS', key('oneshot:' .. oneshot)) == 1 then return {'spent', ''} end
if semantic ~= '' then
  local holder = key('dedup:' .. semantic)
  local survivor = redis.call('GET', holder)
  -- The key was taken when the row was made. A key without a row stands for nothing, and would swallow this job.
  local created = survivor and get(survivor, 'createdAt')[1]
  if created and created + bounds.dedup > now then return told('coalesced', survivor) end
  redis.call('SET', holder, id, 'PX', int(bounds.dedup))
  set(id, 'dedupKey', semantic)
end
set(id, 'queue', queue, 'label', label, 'kind', kind, 'data', data, 'gen', '0', 'attempt', '1')
set(id, 'maxAttempts', attempts, 'createdAt', int(now))
if oneshot ~= '' then set(id, 'oneshot', oneshot) end
if breaker ~= '' then set(id, 'breaker', breaker) end
put_in_queue(id, queue, now)
redis.call('SADD', key('queues'), queue)
told('submitted', id)
return {'submitted', id, '0'}
