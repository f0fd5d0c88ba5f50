-- book(id, owner, gen, key, ttl, amount): what an attempt has used, once.
local id, owner, gen, name, ttl, amount = unpack(ARGV, 2)
local answer = refused(id, owner, gen)
if answer then return answer end
if get(id, 'booked')[1] == gen then return 'won' end
local total = redis.call('INCRBY', key(name), int(amount))
if total == tonumber(amount) then redis.call('PEXPIRE', key(name), int(ttl)) end
local charged = cjson.decode(get(id, 'charged')[1] or '{}')
charged[name] = tonumber(amount)
set(id, 'booked', gen, 'charged', cjson.encode(charged))
return 'won'
