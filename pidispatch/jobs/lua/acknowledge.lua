-- acknowledge(id, worker)
local id, worker = unpack(ARGV, 2)
redis.call('SET', key('cancel:ack:' .. id), worker, 'PX', int(bounds.acknowledged))
redis.call('DEL', key('cancel:req:' .. id))
return 'won'
