// Scripts: what servers run in one step, so that nobody comes between the look and the change.
//
// Everything of a part of a store (PART: chunks whose keys have one tag) is in one slot, and so on
// one server, beside the part's fence: a hash with
//   token   of the writer that holds the lease: another's writes are refused (FENCED)
//   seq     how many changes there were: a replica that took over and has fewer has lost some
//   copied  which staged value was copied last, and the seq then
//   chunks  how many chunks are stored
//   bytes   of their values, where chunks are packed
//   of:ID   how many changes a member of those that share the lease has made: seq, that others make
//           larger, would not show that its own are lost
#pragma once

#include <string_view>

namespace outcore::redis {

enum class Script { kWrite, kCopy, kPlace, kZero, kFence, kPut, kClear };
inline constexpr uint32_t kScriptCount = 7;

// Of scripts that change: the last ARGV is the field of:ID, if there is one; then they return how
// many changes the member has made, and else the new seq.

// KEYS: chunk, fence. ARGV: token, offset, bytes of a chunk, the bytes.
// A new value is made at its full size: one that grows takes twice its memory.
inline constexpr std::string_view kWriteScript = R"(
local token = redis.call('HGET', KEYS[2], 'token')
if not token then return redis.error_reply('LOST no fence') end
if token ~= ARGV[1] then return redis.error_reply('FENCED by ' .. token) end
if redis.call('EXISTS', KEYS[1]) == 1 then
  redis.call('SETRANGE', KEYS[1], ARGV[2], ARGV[4])
else
  local offset, whole, part = tonumber(ARGV[2]), tonumber(ARGV[3]), #ARGV[4]
  local value = ARGV[4]
  if part < whole then
    value = string.rep('\0', offset) .. value .. string.rep('\0', whole - offset - part)
  end
  redis.call('SET', KEYS[1], value)
  redis.call('HINCRBY', KEYS[2], 'chunks', 1)
end
local seq = redis.call('HINCRBY', KEYS[2], 'seq', 1)
return ARGV[5] and redis.call('HINCRBY', KEYS[2], ARGV[5], 1) or seq
)";

// Bytes that a script gets are made a Lua string, and every byte of one is hashed: 2 ns each, 130
// us for 64 KiB. So those of larger writes go by SET or SETRANGE to a key that expires, the
// *staged* one, and a script then gives it the chunk's name. Until then the chunk is what it was:
// whatever is refused, forgotten or late on the way costs a staged value, never the chunk.

// KEYS: chunk, fence, staged. ARGV: token, bytes of a chunk, ms. Before SETRANGE: the staged value
// becomes a copy of the chunk, or zeros. The fence's `copied` says as of which seq.
inline constexpr std::string_view kCopyScript = R"(
local token = redis.call('HGET', KEYS[2], 'token')
if not token then return redis.error_reply('LOST no fence') end
if token ~= ARGV[1] then return redis.error_reply('FENCED by ' .. token) end
if redis.call('COPY', KEYS[1], KEYS[3]) == 0 then
  redis.call('BITFIELD', KEYS[3], 'INCRBY', 'u1', tonumber(ARGV[2]) * 8 - 1, 0)
end
redis.call('PEXPIRE', KEYS[3], ARGV[3])
redis.call('HSET', KEYS[2], 'copied', KEYS[3] .. ' ' .. redis.call('HGET', KEYS[2], 'seq'))
return 0
)";

// KEYS: chunk, fence, staged. ARGV: token, 1 if it is a changed copy: then nothing of the part may
// have changed since.
inline constexpr std::string_view kPlaceScript = R"(
local fence = redis.call('HMGET', KEYS[2], 'token', 'seq', 'copied')
local refused
if not fence[1] then refused = 'LOST no fence'
elseif fence[1] ~= ARGV[1] then refused = 'FENCED by ' .. fence[1]
elseif ARGV[2] == '1' and fence[3] ~= KEYS[3] .. ' ' .. fence[2] then
  refused = 'TRYAGAIN the part has changed'
elseif redis.call('PERSIST', KEYS[3]) == 0 then refused = 'TRYAGAIN the value is gone' end
if refused then
  redis.call('UNLINK', KEYS[3])
  return redis.error_reply(refused)
end
local is_new = redis.call('EXISTS', KEYS[1]) == 0
redis.call('RENAME', KEYS[3], KEYS[1])
if is_new then redis.call('HINCRBY', KEYS[2], 'chunks', 1) end
local seq = redis.call('HINCRBY', KEYS[2], 'seq', 1)
return ARGV[3] and redis.call('HINCRBY', KEYS[2], ARGV[3], 1) or seq
)";

// KEYS: chunk, fence. ARGV: token, offset, bytes of a chunk, how many.
// It runs also where memory is full: it gives some back.
inline constexpr std::string_view kZeroScript = R"(#!lua flags=allow-oom
local token = redis.call('HGET', KEYS[2], 'token')
if not token then return redis.error_reply('LOST no fence') end
if token ~= ARGV[1] then return redis.error_reply('FENCED by ' .. token) end
if redis.call('EXISTS', KEYS[1]) == 1 then
  if ARGV[4] == ARGV[3] then
    redis.call('UNLINK', KEYS[1])
    redis.call('HINCRBY', KEYS[2], 'chunks', -1)
  else
    redis.call('SETRANGE', KEYS[1], ARGV[2], string.rep('\0', tonumber(ARGV[4])))
  end
end
local seq = redis.call('HINCRBY', KEYS[2], 'seq', 1)
return ARGV[5] and redis.call('HINCRBY', KEYS[2], ARGV[5], 1) or seq
)";

// KEYS: fence. ARGV: token, 1 if the store is new. Members of before are forgotten.
inline constexpr std::string_view kFenceScript = R"(#!lua flags=allow-oom
local token = redis.call('HGET', KEYS[1], 'token')
if not token and ARGV[2] ~= '1' then return redis.error_reply('LOST no fence') end
if token and tonumber(token) > tonumber(ARGV[1]) then
  return redis.error_reply('FENCED by ' .. token)
end
if token and token ~= ARGV[1] then
  for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
    if string.find(field, '^of:') then redis.call('HDEL', KEYS[1], field) end
  end
end
redis.call('HSET', KEYS[1], 'token', ARGV[1])
local seq = redis.call('HINCRBY', KEYS[1], 'seq', 1)
return ARGV[3] and redis.call('HINCRBY', KEYS[1], ARGV[3], 1) or seq
)";

// KEYS: packed chunk, fence. ARGV: token, the new value. Returns the new seq.
inline constexpr std::string_view kPutScript = R"(
local token = redis.call('HGET', KEYS[2], 'token')
if not token then return redis.error_reply('LOST no fence') end
if token ~= ARGV[1] then return redis.error_reply('FENCED by ' .. token) end
local before = redis.call('STRLEN', KEYS[1])
redis.call('SET', KEYS[1], ARGV[2])
if before == 0 then redis.call('HINCRBY', KEYS[2], 'chunks', 1) end
if before ~= #ARGV[2] then redis.call('HINCRBY', KEYS[2], 'bytes', #ARGV[2] - before) end
return redis.call('HINCRBY', KEYS[2], 'seq', 1)
)";

// KEYS: packed chunk, fence. ARGV: token. Returns the new seq. It runs also where memory is full.
inline constexpr std::string_view kClearScript = R"(#!lua flags=allow-oom
local token = redis.call('HGET', KEYS[2], 'token')
if not token then return redis.error_reply('LOST no fence') end
if token ~= ARGV[1] then return redis.error_reply('FENCED by ' .. token) end
local before = redis.call('STRLEN', KEYS[1])
if before > 0 then
  redis.call('UNLINK', KEYS[1])
  redis.call('HINCRBY', KEYS[2], 'chunks', -1)
  redis.call('HINCRBY', KEYS[2], 'bytes', -before)
end
return redis.call('HINCRBY', KEYS[2], 'seq', 1)
)";

inline constexpr std::string_view kScriptText[kScriptCount] = {
    kWriteScript, kCopyScript, kPlaceScript, kZeroScript, kFenceScript, kPutScript, kClearScript};

}  // namespace outcore::redis
