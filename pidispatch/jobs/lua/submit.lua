-- submit(id, data, queue, label, kind, maxAttempts, dedupKey or '')
local id, data, queue, label, kind, attempts, semantic = unpack(ARGV, 2)
if redis.call('EXISTS', row(id)) == 1 then return {'duplicate', id} end
if semantic ~= '' then
  local holder = key('dedup:' .. semantic)
  local survivor = redis.call('GET', holder)
  -- The key was taken when the row was made. A key without a row stands for nothing, and would swallow this job.
  local created = survivor and get(survivor, 'createdAt')[1]
  if created and created + bounds.dedup > now then return {'coalesced', survivor} end
  redis.call('SET', holder, id, 'PX', int(bounds.dedup))
  set(id, 'dedupKey', semantic)
end
set(id, 'queue', queue, 'label', label, 'kind', kind, 'data', data, 'gen', '0', 'attempt', '1')
set(id, 'maxAttempts', attempts, 'createdAt', int(now))
put_in_queue(id, queue, now)
redis.call('SADD', key('queues'), queue)
return {'submitted', id, '0'}
