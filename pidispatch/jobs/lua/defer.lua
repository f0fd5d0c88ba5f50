-- defer(id, owner, gen, delay, why, neverStarted)
local id, owner, gen, delay, why, never_started = unpack(ARGV, 2)
local answer = refused(id, owner, gen)
if answer then return {answer} end
-- What may have cost something never sleeps: it would be paid for again.
if never_started ~= '1' and get(id, 'spendFrom')[1] then return {'stale'} end
if cancel_stands(id) then return {'cancel'} end
give_back(id)
clear(id, 'spendFrom')
drop_lease(id)
return put_to_sleep(id, tonumber(delay), why)
