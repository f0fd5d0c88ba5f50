-- defer(id, owner, gen, delay, why)
local id, owner, gen, delay, why = unpack(ARGV, 2)
local answer = refused(id, owner, gen)
if answer then return {answer} end
-- What may have cost something never sleeps: it would be paid for again.
if get(id, 'spendFrom')[1] then return {'stale'} end
if cancel_stands(id) then return {'cancel'} end
drop_lease(id)
return put_to_sleep(id, tonumber(delay), why)
