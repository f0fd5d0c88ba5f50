-- open(format, id of the state folder or '', fresh id)
local format, folder, fresh = unpack(ARGV, 2)
local found = redis.call('GET', key('schema'))
if found and (tonumber(found) or math.huge) > tonumber(format) then return {'newer', found} end
if not found then redis.call('SET', key('schema'), format) end
local id = redis.call('GET', key('deployment'))
if not id then
  id = folder ~= '' and folder or fresh
  redis.call('SET', key('deployment'), id)
elseif folder ~= '' and folder ~= id then
  return {'other', id}
end
return {'open', id}
