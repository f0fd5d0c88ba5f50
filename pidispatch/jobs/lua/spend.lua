-- spend(id, owner, gen)
local id, owner, gen = unpack(ARGV, 2)
local answer = refused(id, owner, gen)
if answer then return answer end
redis.call('HSETNX', row(id), 'spendFrom', int(now))
take_lease(id, owner)
return 'won'
