-- renew(id, owner, gen, id, owner, gen, ...): an answer for each
local answers = {}
for at = 2, #ARGV, 3 do
  local id, owner, gen = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  local answer = refused(id, owner, gen)
  if not answer then take_lease(id, owner) end
  answers[#answers + 1] = answer or 'won'
end
return answers
