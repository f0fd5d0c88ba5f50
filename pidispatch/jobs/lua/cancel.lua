-- cancel(id, record, reason, cause or '', attempt of the record): the state, and whether it was changed
local id, record, reason, cause, attempt = unpack(ARGV, 2)
local found = get(id, 'state', 'queue', 'attempt')
local state = found[1]
if not state then return {'unknown', 0} end
if state == 'queued' or state == 'deferred' then
  -- An attempt has ended since the record was made, and what it cost is not in it.
  if found[3] ~= attempt then return {'stale', 0} end
  wake(id, found[2])
  redis.call('HINCRBY', row(id), 'gen', 1)
  keep_record(id, record, attempt)
  end_job(id, 'cancelled', reason, cause, '')
  return {'cancelled', 1}
end
if state == 'active' then
  redis.call('SET', key('cancel:req:' .. id), 'operator-cancel', 'PX', int(bounds.request))
  return {'requested', 0}
end
return {state, 0}
