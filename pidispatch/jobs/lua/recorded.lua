-- recorded(id, attempt)
local id, attempt = unpack(ARGV, 2)
local found = get(id, 'state', 'recordAttempt', 'finishedAt', 'kind')
if not found[1] then return 'unknown' end
if found[2] ~= attempt then return 'stale' end
set(id, 'recorded', '1')
redis.call('ZREM', key('jobs:unrecorded'), id)
local state, keep = found[1], bounds.keep[found[4]] or bounds.keep['local']
if found[3] and (state == 'completed' or state == 'cancelled') then
  redis.call('PEXPIRE', row(id), int(math.max(1, found[3] + keep.done_ms - now)))
end
return 'won'
