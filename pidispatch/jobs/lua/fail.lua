-- fail(id, owner, gen, record, reason or '', cause or '', final, neverStarted, telling or '')
local id, owner, gen, record, reason, cause, final, never_started, telling = unpack(ARGV, 2)
local answer = refused(id, owner, gen)
if answer ~= 'stale' then tell_waiting(id, telling) end
if answer then return {answer} end
local found = get(id, 'attempt', 'maxAttempts')
local attempt = tonumber(found[1])
local again = final == '0' and attempt < tonumber(found[2])
if again and cancel_stands(id) then return {'cancel'} end
keep_record(id, record, found[1])
drop_lease(id)
if again or never_started == '1' then clear(id, 'spendFrom') end
if again then
  set(id, 'attempt', int(attempt + 1))
  return put_to_sleep(id, bounds.retry * 2 ^ (attempt - 1), 'retry')
end
end_job(id, 'failed', reason, cause)
return {'won'}
