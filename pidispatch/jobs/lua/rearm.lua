-- rearm(oneshot or '', breaker or ''): forget that a rule is spent, or that it is paused; which of both stood
local oneshot, breaker = unpack(ARGV, 2)
local spent, paused = 0, 0
if oneshot ~= '' then spent = redis.call('DEL', key('oneshot:' .. oneshot)) end
if breaker ~= '' then
  paused = redis.call('DEL', key('trigger:paused:' .. breaker))
  redis.call('DEL', key('trigger:runs:' .. breaker))
  redis.call('SREM', key('triggers:paused'), breaker)
end
return {spent, paused}
