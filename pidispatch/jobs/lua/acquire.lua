-- acquire(id, gen, owner)
local id, gen, owner = unpack(ARGV, 2)
local found = get(id, 'state', 'gen', 'owner', 'queue', 'label', 'data', 'attempt', 'maxAttempts', 'record')
local state, queue = found[1], found[4]
if not state then return {'unknown'} end
if state == 'completed' or state == 'failed' or state == 'cancelled' then return {'finished'} end
if found[2] ~= gen then return {'stale'} end
if state == 'active' then
  -- The same delivery asks again where the answer to its first question was lost.
  if found[3] ~= owner then return {'active'} end
else
  local ends = redis.call('ZSCORE', key('jobs:active'), id)
  if ends and ends + 0 > now and redis.call('EXISTS', lock(id)) == 1 then return {'active'} end
  wake(id, queue)
  -- Here and not before: from the moment a pause stands, no ticket that was under way starts a job.
  if redis.call('EXISTS', key('queue:paused:' .. queue), key('queue:paused:' .. '*')) > 0 then
    local slept = put_to_sleep(id, bounds.paused, 'paused')
    return {'paused', slept[2], slept[4], queue, found[5]}
  end
  set(id, 'state', 'active', 'owner', owner, 'acquiredAt', int(now))
end
take_lease(id, owner)
return {'acquired', found[6], found[7], found[8], queue, found[5], found[9] or ''}
