// Scripts: what servers run in one step, so that nobody comes between the look and the change.
//
// Everything of a part of a store (PART: chunks whose keys have one tag) is in one slot, and so on
// one server, beside the part's fence: a hash with
//   token   of the writer that holds the lease: another's writes are refused (FENCED)
//   seq     how many changes there were: a replica that took over and has fewer has lost some
//   chunks  how many chunks are stored
//   bytes   of their values, where chunks are packed
#pragma once

#include <string_view>

namespace outcore::redis {

enum class Script { kWrite, kLift, kPlace, kZero, kFence, kPut, kClear };
inline constexpr uint32_t kScriptCount = 7;

// KEYS: chunk, fence. ARGV: token, offset, bytes of a chunk, the bytes. Returns the new seq.
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
return redis.call('HINCRBY', KEYS[2], 'seq', 1)
)";

// Bytes that a script gets are made a Lua string, and every byte of one is hashed: 2 ns each, 130
// us for 64 KiB. So those of larger writes go by SET or SETRANGE to a key that expires, the
// *staged* one, and a script then gives it the chunk's name.

// KEYS: chunk, fence, staged. ARGV: token, bytes of a chunk. Before SETRANGE, within MULTI: the
// chunk becomes the staged value, or one of zeros does.
inline constexpr std::string_view kLiftScript = R"(
local token = redis.call('HGET', KEYS[2], 'token')
if not token then return redis.error_reply('LOST no fence') end
if token ~= ARGV[1] then return redis.error_reply('FENCED by ' .. token) end
if redis.call('EXISTS', KEYS[1]) == 1 then
  redis.call('RENAME', KEYS[1], KEYS[3])
  return redis.call('HINCRBY', KEYS[2], 'chunks', -1)
end
redis.call('BITFIELD', KEYS[3], 'INCRBY', 'u1', tonumber(ARGV[2]) * 8 - 1, 0)
return 0
)";

// KEYS: chunk, fence, staged. ARGV: token, 1 if the chunk was lifted. Returns the new seq.
inline constexpr std::string_view kPlaceScript = R"(
local token = redis.call('HGET', KEYS[2], 'token')
if not token then return redis.error_reply('LOST no fence') end
if token ~= ARGV[1] then return redis.error_reply('FENCED by ' .. token) end
local is_new = redis.call('EXISTS', KEYS[1]) == 0
if not is_new and ARGV[2] == '1' then
  return redis.error_reply('TRYAGAIN the value was not lifted')
end
if redis.call('PERSIST', KEYS[3]) == 0 then
  return redis.error_reply('TRYAGAIN the value is gone')
end
redis.call('RENAME', KEYS[3], KEYS[1])
if is_new then redis.call('HINCRBY', KEYS[2], 'chunks', 1) end
return redis.call('HINCRBY', KEYS[2], 'seq', 1)
)";

// KEYS: chunk, fence. ARGV: token, offset, bytes of a chunk, how many. Returns the new seq.
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
return redis.call('HINCRBY', KEYS[2], 'seq', 1)
)";

// KEYS: fence. ARGV: token, 1 if the store is new. Returns seq.
inline constexpr std::string_view kFenceScript = R"(#!lua flags=allow-oom
local token = redis.call('HGET', KEYS[1], 'token')
if not token and ARGV[2] ~= '1' then return redis.error_reply('LOST no fence') end
if token and tonumber(token) > tonumber(ARGV[1]) then
  return redis.error_reply('FENCED by ' .. token)
end
redis.call('HSET', KEYS[1], 'token', ARGV[1])
return redis.call('HINCRBY', KEYS[1], 'seq', 1)
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
    kWriteScript, kLiftScript, kPlaceScript, kZeroScript, kFenceScript, kPutScript, kClearScript};

}  // namespace outcore::redis
