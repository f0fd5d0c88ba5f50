-- dealt(ttl, id, milliseconds, id, milliseconds, ...): up to when schedules are dealt with; it only grows.
local ttl = ARGV[2]
for at = 3, #ARGV, 2 do
  local name = key('cron:last:' .. ARGV[at])
  local before = tonumber(redis.call('GET', name) or '-1')
  redis.call('SET', name, int(math.max(before, tonumber(ARGV[at + 1]))), 'PX', int(tonumber(ttl)))
end
return 'done'
