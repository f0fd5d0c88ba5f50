-- settle(id, attempt, engine or '', spent, state, record or '', reason or '', cause or '', said)
local id, attempt, engine, spent, state, record, reason, cause, said = unpack(ARGV, 2)
local found = get(id, 'state', 'attempt', 'owner', 'spendFrom', 'reason', 'telemetry')
if not found[1] then return {'unknown'} end
if found[2] ~= attempt then return {'stale'} end
if found[1] ~= 'active' then
  if found[5] ~= 'worker-lost' or found[6] or record == '' then return {'stale'} end
  set(id, 'telemetry', record)
  owe_record(id, attempt)
  return {'completed-telemetry'}
end
-- The same attempt, lost before it spent anything, may run on another engine now.
if engine ~= '' and not string.find(found[3] or '', '#' .. engine .. '#', 1, true) then return {'stale'} end
if spent == '1' then redis.call('HSETNX', row(id), 'spendFrom', int(now)) end
if spent == '1' and record == '' then
  end_without_worker(id, 'failed', 'worker-lost')
  return {'won'}
end
if spent == '1' or (found[4] and record ~= '') then
  keep_record(id, record, attempt)
  drop_lease(id)
  end_job(id, state, reason, cause, said)
  return {'won'}
end
if lose_unspent(id) == 'queued' then return {'unspent', ticket(id)} end
return {'unspent'}
