-- finish(id, owner, gen, state, record, reason or '', cause or '', attempt of the record, telling or '', charged, said)
local id, owner, gen, state, record, reason, cause, attempt, telling, charged, said = unpack(ARGV, 2)
local answer = refused(id, owner, gen)
if answer ~= 'stale' then tell_waiting(id, telling) end
if answer then return answer end
if charged == '0' then give_back(id) end
-- That of a run before the server lost its data may be a later attempt than the row's.
keep_record(id, record, attempt)
drop_lease(id)
end_job(id, state, reason, cause, said)
return 'won'
