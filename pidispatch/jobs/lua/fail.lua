-- fail(id, owner, gen, record, reason or '', cause or '', final, neverStarted, telling or '', charged,
-- said)
local id, owner, gen, record, reason, cause, final, never_started, telling, charged, said = unpack(ARGV, 2)
local answer = refused(id, owner, gen)
if answer then
  if answer ~= 'stale' then tell_waiting(id, telling) end
  return {answer}
end
local found = get(id, 'attempt', 'maxAttempts')
local attempt = tonumber(found[1])
local again = final == '0' and attempt < tonumber(found[2])
if again and cancel_stands(id) then return {'cancel'} end
tell_waiting(id, telling)
keep_record(id, record, found[1])
if charged == '0' then give_back(id) end
drop_lease(id)
if again or never_started == '1' then clear(id, 'spendFrom') end
if again then
  -- The next attempt is counted anew; what this one was counted for stays.
  clear(id, 'charged', 'verdict')
  set(id, 'attempt', int(attempt + 1))
  return put_to_sleep(id, bounds.retry * 2 ^ (attempt - 1), 'retry')
end
end_job(id, 'failed', reason, cause, said)
return {'won'}
