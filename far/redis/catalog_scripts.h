// CatalogScripts: what the server that keeps the catalog runs in one step. See catalog.h and
// shared_lease.h.
//
// Of each store there is a record, a hash. Of a lease that several writers share it has
//   shared      the token of that lease: another token's are of nobody any more
//   member:ID   until when (ms) the member's own lease runs; o (has opened it), w (writes) or
//               c (has nothing more to write); who it is, for people
//   lock:WHAT   the member that has it, and the turn in which it took it
//   heard       when any of them last said something
//   turn:ID     the last turn that the member has ended: what it asked for before comes too late
// and of one that is put, or whose put did not end,
//   incomplete  the token of that put: another token's counts no more, so writers that do not know
//               the field, and leave it there, do no harm
// Writers of before know none of them, and see one owner and one lease: the longest.
#pragma once

#include <string>

namespace outcore::redis {

// KEYS: the set of names, the record. ARGV: verb, name, token or owner's id, then the verb's own.
// They run also where memory is full, or nothing could be removed there.
inline constexpr const char* kRecordPrelude = R"(#!lua flags=allow-oom
local set, record, verb, name, me = KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function int(n) return string.format('%.0f', n) end
local function get(field) return redis.call('HGET', record, field) end
local function put(field, value) redis.call('HSET', record, field, value) end
-- Of what others wrote: a whole number that a double can count, or nil.
local function count(text)
  return type(text) == 'string' and #text <= 16 and string.find(text, '^%d+$') and tonumber(text)
end
local function number(field)
  local found = count(get(field) or '0')
  if not found then error({err = 'DAMAGED ' .. name .. ' ' .. field}) end
  return found
end
-- Before anything is changed.
for key, wanted in pairs({[set] = 'set', [record] = 'hash'}) do
  local kind = redis.call('TYPE', key)['ok']
  if kind ~= 'none' and kind ~= wanted and (key == set or name ~= '') then
    error({err = 'ALIEN ' .. kind .. ' ' .. key})
  end
end
for _, field in ipairs({'size', 'lease', 'deadline', 'lifetime', 'token', 'booked', 'heard'}) do
  if name ~= '' then number(field) end
end
local function live()
  local lifetime = number('lifetime')
  put('deadline', lifetime > 0 and int(now + lifetime) or '0')
end
local function forget_members()
  for _, field in ipairs(redis.call('HKEYS', record)) do
    if field == 'shared' or field == 'heard' or string.find(field, '^member:')
       or string.find(field, '^lock:') or string.find(field, '^turn:') then
      redis.call('HDEL', record, field)
    end
  end
end
)";

inline constexpr const char* kCatalogScript = R"(
-- Ours come first: a record may have fields of these names.
local function all(r, listed)
  local fields = {'now', int(now), 'listed', listed}
  local found = redis.pcall('HGETALL', r)
  for i = 1, #found do fields[i + 4] = found[i] end
  return fields
end
-- For a store of `size` bytes, by what a value and a key take: see needed_bytes().
local function book(size, chunk, parts, capacity)
  if capacity < 0 then put('booked', '0') return nil end
  local chunks = math.ceil(size / math.max(chunk, 1))
  local needed = math.ceil(chunks * chunk * value_factor) + (chunks + parts) * key_bytes
  local sum = 0
  for _, other in ipairs(redis.call('SMEMBERS', set)) do
    if other ~= name then
      sum = sum + (count(redis.pcall('HGET', set .. ':' .. other, 'booked')) or 0)
    end
  end
  if sum + needed > capacity then return 'FULL ' .. int(sum) .. ' ' .. int(needed) end
  put('booked', int(needed))
  return nil
end

if verb == 'open' then
  local mode, owner, size, create = ARGV[4], ARGV[5], tonumber(ARGV[6]), ARGV[7] == '1'
  local chunk, parts, replicas, id = ARGV[8], ARGV[9], ARGV[10], ARGV[11]
  local lifetime, capacity = tonumber(ARGV[12]), tonumber(ARGV[13])
  local lease, packing, member, chance = tonumber(ARGV[14]), ARGV[16], ARGV[17], ARGV[18]
  local is_rewritten = ARGV[19] == '1'
  local is_there = redis.call('EXISTS', record) == 1
  if not is_there and (not create or mode ~= 'w') then return redis.error_reply('MISSING store') end
  if mode ~= 'd' and is_there and get('state') == 'removing' then
    return redis.error_reply('REMOVED just now')
  end
  if member ~= '' and is_there and (get('packing') or '') ~= '' then
    return redis.error_reply('PACKED ' .. get('packing'))
  end
  local is_joined = false
  if mode ~= 'r' and is_there then
    local holder = get('owner_id') or ''
    local left = number('lease') - now
    is_joined = member ~= '' and holder ~= '' and left > 0 and get('shared') == get('token')
    if holder ~= '' and holder ~= me and left > 0 and not is_joined then
      return redis.error_reply('TAKEN ' .. int(left) .. ' ' .. (get('owner') or ''))
    end
  end
  local is_incomplete = is_there and get('incomplete') == get('token')
  if mode ~= 'd' and is_incomplete and not is_rewritten then
    return redis.error_reply('INCOMPLETE ' .. int(math.max(number('lease') - now, 0)) .. ' ' ..
                             (get('owner') or ''))
  end
  if mode == 'd' then
    local deadline = number('deadline')
    if ARGV[15] == '1' and (deadline == 0 or deadline > now) then
      return redis.error_reply('MISSING store')  -- it was used meanwhile
    end
    put('state', 'removing')
  end
  local have = is_there and number('size') or 0
  if size > have and not create then return redis.error_reply('SHORT ' .. int(have)) end
  if size > have then
    local full = book(size, is_there and number('chunk') or tonumber(chunk),
                      is_there and number('parts') or tonumber(parts), capacity)
    if full then
      if not is_there then redis.call('DEL', record) end
      return redis.error_reply(full)
    end
    put('size', int(size))
  end
  if not is_there then
    redis.call('SADD', set, name)
    redis.call('HSET', record, 'name', name, 'id', id, 'chunk', chunk, 'parts', parts,
               'replicas', replicas, 'token', '0', 'state', 'new', 'size', int(size))
    if packing ~= '' then put('packing', packing) end
  end
  if mode ~= 'r' then
    redis.call('HDEL', record, 'checksum')  -- it may change from now on
    if is_joined then
      put('lease', int(math.max(number('lease'), now + lease)))
    else
      forget_members()
      redis.call('HINCRBY', record, 'token', 1)
      if is_incomplete then put('incomplete', get('token')) end  -- until it is put whole
      redis.call('HSET', record, 'owner_id', me, 'owner',
                 member == '' and owner or owner .. ' (of several)', 'lease', int(now + lease),
                 'chance', chance)
      if member ~= '' then
        put('shared', get('token'))
        put('heard', int(now))
      end
    end
    if member ~= '' then put('member:' .. member, int(now + lease) .. ' o ' .. owner) end
    if lifetime >= 0 then put('lifetime', int(lifetime)) end
    live()
  end
  return all(record, name)
end

if verb == 'list' then
  local records = {}
  for _, other in ipairs(redis.call('SMEMBERS', set)) do
    table.insert(records, all(set .. ':' .. other, other))
  end
  return records
end

if get('token') ~= me then
  return redis.error_reply('FENCED ' .. (get('owner') or 'by nobody: it was removed'))
end
if verb == 'renew' then
  if get('owner_id') ~= '' then  -- else it was given back, and this was sent before
    put('lease', int(now + tonumber(ARGV[4])))
    live()
  end
elseif verb == 'ready' then
  put('state', 'ready')
elseif verb == 'release' then
  redis.call('HSET', record, 'owner_id', '', 'owner', '', 'lease', '0')
  if ARGV[4] then put('lifetime', ARGV[4]) end
  live()
elseif verb == 'resize' then
  local size = tonumber(ARGV[4])
  if get('shared') == me then size = math.max(size, number('size')) end  -- another's is larger
  local full = book(size, number('chunk'), number('parts'), tonumber(ARGV[5]))
  if full then return redis.error_reply(full) end
  put('size', int(size))
elseif verb == 'rewrite' then
  put('incomplete', me)
elseif verb == 'sum' then
  put('checksum', ARGV[4])
  redis.call('HDEL', record, 'incomplete')
elseif verb == 'drop' then
  redis.call('DEL', record)
  redis.call('SREM', set, name)
  return {}
end
return all(record, name)
)";

// ARGV: verb, name, token, member's id, ms of a lease, chance of a new token, then the verb's own.
// What may be refused in the course of things is an answer as others: outcome, who. Whatever a
// member asks for renews its lease.
inline constexpr const char* kMembersScript = R"(
local id, ms, chance = ARGV[4], tonumber(ARGV[5]), ARGV[6]
local function look(member)
  local till, state, who = string.match(get('member:' .. member) or '', '^(%d+) (%a) (.*)$')
  return count(till) or 0, state or 'o', who or ''
end
local function each(visit)
  for _, field in ipairs(redis.call('HKEYS', record)) do
    local member = string.match(field, '^member:(%x+)$')
    if member and member ~= id then visit(member, look(member)) end
  end
end
-- One has ended, or is silent, with what only he could have gone on with: nobody does, and what
-- he may still say is of an old token.
local function fall(who)
  redis.call('HINCRBY', record, 'token', 1)
  forget_members()
  redis.call('HSET', record, 'owner_id', '', 'owner', '', 'lease', '0', 'chance', chance)
  live()
  return {'outcome', 'broken', 'who', who, 'token', get('token')}
end

if get('token') ~= me or get('shared') ~= me or not get('member:' .. id) then
  return redis.error_reply('FENCED ' .. (get('owner') or ''))
end
if verb == 'leave' then
  redis.call('HDEL', record, 'member:' .. id, 'turn:' .. id)
  local last = 0
  each(function(member, till) last = math.max(last, till) end)
  for _, field in ipairs(redis.call('HKEYS', record)) do
    if string.find(field, '^lock:') and string.match(get(field), '^%x+') == id then
      redis.call('HDEL', record, field)
    end
  end
  if last > now then
    put('lease', int(last))
  else
    forget_members()
    redis.call('HSET', record, 'owner_id', '', 'owner', '', 'lease', '0')
  end
  live()
  return {}
end

-- Nobody was heard where each says something every third of a lease: it was the server that was
-- not there. Then those who lived have not ended.
local heard = number('heard')
if now - heard > ms / 2 then
  each(function(member, till, state, who)
    if till > heard then put('member:' .. member, int(now + ms) .. ' ' .. state .. ' ' .. who) end
  end)
end
put('heard', int(now))
local _, state, who = look(id)
if verb == 'be' then state = ARGV[7] end
put('member:' .. id, int(now + ms) .. ' ' .. state .. ' ' .. who)
put('lease', int(math.max(number('lease'), now + ms)))
live()

if verb == 'lock' then
  local field, turn = 'lock:' .. ARGV[7], tonumber(ARGV[8])
  local holder = string.match(get(field) or '', '^%x+')
  if holder and holder ~= id then
    local till, _, other = look(holder)
    if till > now then return {'outcome', 'busy', 'who', other} end
    return fall(other)
  end
  if turn > 0 and turn <= number('turn:' .. id) then return {'outcome', 'late'} end
  put(field, id .. ' ' .. int(turn))
elseif verb == 'unlock' then
  local field = 'lock:' .. ARGV[7]
  if get(field) == id .. ' ' .. ARGV[8] then redis.call('HDEL', record, field) end
  if ARGV[8] ~= '0' then put('turn:' .. id, ARGV[8]) end
elseif verb == 'others' then
  local since, alive, unheard, dead, gone = tonumber(ARGV[7]), 0, 0, 0, ''
  each(function(member, till, how, other)
    if how == 'o' then return end
    if till <= now then
      dead, gone = dead + 1, other
    else
      alive = alive + 1
      if how == 'w' and till - ms <= since then unheard = unheard + 1 end
    end
  end)
  if dead > 0 and alive == 0 and ARGV[8] == '1' then return fall(gone) end
  return {'outcome', 'done', 'alive', int(alive), 'unheard', int(unheard), 'dead', int(dead),
          'who', gone, 'now', int(now)}
end
return {'outcome', 'done', 'size', get('size')}
)";

}  // namespace outcore::redis
