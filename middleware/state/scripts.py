"""What Redis does in one step; Lua, as `counter.Counter` counts.

A counter is a hash: `step` seconds of a bucket, the `first` bucket that there may be, `sum` of the
buckets, `total` of what does not end by itself, `base` of that from before Redis lost what it had,
and a number for each bucket. Every script begins
with the time at which it was sent: one that lay in a stuck Redis does nothing, as the gateway has
counted for itself since.
"""

from __future__ import annotations

from middleware.state.counter import BUCKETS

PATIENCE = 0.4
"""Seconds for which a question may wait for its answer."""

_COMMON = f"""
local clock = redis.call('TIME')
local real = clock[1] + clock[2] / 1000000
local now = tonumber(ARGV[1])
if real - now > {PATIENCE} then return {{'late'}} end
local function text(number) return string.format('%.17g', number) end
local function parts(key, first, last)
  local names = {{}}
  for bucket = first, last do names[#names + 1] = text(bucket) end
  return names, redis.call('HMGET', key, unpack(names))
end
local function read(key)
  local found = redis.call('HMGET', key, 'step', 'first', 'sum', 'total', 'base')
  for at = 1, 5 do found[at] = tonumber(found[at] or '0') end
  local step, first, sum, total = found[1], found[2], found[3], found[4] + found[5]
  if step == 0 then return 0, 0, 0 end
  local last = math.floor(now / step)
  if first <= last then
    local names, amounts = parts(key, first, math.min(last, first + {BUCKETS + 1}))
    for _, amount in ipairs(amounts) do
      if amount then sum = sum - tonumber(amount) end
    end
    redis.call('HDEL', key, unpack(names))
    if last >= first + {BUCKETS + 1} then sum = 0 end
    redis.call('HSET', key, 'first', text(last + 1), 'sum', text(sum))
  end
  return sum, total, step
end
local function change(key, bucket, amount)
  if amount == 0 then return end
  if tonumber(redis.call('HINCRBYFLOAT', key, bucket, text(amount))) == 0 then
    redis.call('HDEL', key, bucket)
  end
  local sum = tonumber(redis.call('HINCRBYFLOAT', key, 'sum', text(amount)))
  local first = redis.call('HGET', key, 'first')
  if sum == amount or not first or tonumber(bucket) < tonumber(first) then
    redis.call('HSET', key, 'first', bucket)
  end
end
local function give(key, bucket, amount)
  local there = redis.call('HGET', key, bucket)
  if there then change(key, bucket, -math.min(tonumber(there), amount)) end
end
"""
# Of each counter: step, life in ms, limit, amount, bucket; bucket and amount it had already.
TAKE = f"""{_COMMON}
local sums, totals, refused = {{}}, {{}}, 0
for at, key in ipairs(KEYS) do
  local sum, total = read(key)
  sums[at], totals[at] = sum + total, total
  if refused == 0 and sums[at] >= tonumber(ARGV[7 * at - 3]) then refused = at end
end
local free = 0
if refused > 0 then
  local left, limit = sums[refused], tonumber(ARGV[7 * refused - 3])
  local first = tonumber(redis.call('HGET', KEYS[refused], 'first') or '1')
  for start = first, first + {BUCKETS}, 16 do
    local _, amounts = parts(KEYS[refused], start, start + 15)
    for at, amount in ipairs(amounts) do
      left = left - tonumber(amount or '0')
      if free == 0 and left < limit then free = start + at - 1 end
    end
    if free > 0 then break end
  end
else
  for at, key in ipairs(KEYS) do
    local i = 7 * at - 5
    local amount, had = tonumber(ARGV[i + 3]), tonumber(ARGV[i + 6])
    redis.call('HSETNX', key, 'step', ARGV[i])
    if had ~= 0 then give(key, ARGV[i + 5], had) end
    change(key, ARGV[i + 4], amount + had)
    redis.call('PEXPIRE', key, ARGV[i + 1])
    sums[at] = sums[at] + amount
  end
end
for at, sum in ipairs(sums) do sums[at], totals[at] = text(sum), text(totals[at]) end
return {{'', refused, text(free), sums, totals}}
"""
# Of each counter: step, life in ms, bucket and amount that were held, bucket of what was used
# (none: it goes to the total), amount.
SETTLE = f"""{_COMMON}
local totals = {{}}
for at, key in ipairs(KEYS) do
  local i = 6 * at - 4
  local used, _, total = tonumber(ARGV[i + 5]), read(key)
  if ARGV[i + 2] ~= '' then give(key, ARGV[i + 2], tonumber(ARGV[i + 3])) end
  redis.call('HSETNX', key, 'step', ARGV[i])
  if ARGV[i + 4] ~= '' then change(key, ARGV[i + 4], used)
  elseif used ~= 0 then
    redis.call('HINCRBYFLOAT', key, 'total', text(used))
    total = total + used
  end
  redis.call('PEXPIRE', key, ARGV[i + 1])
  totals[at] = text(total)
end
return {{'', totals}}
"""
SUMS = f"""{_COMMON}
local sums = {{}}
for at, key in ipairs(KEYS) do
  local sum, total = read(key)
  sums[at] = text(sum + total)
end
return {{'', sums}}
"""
# Of each mark: its text with when it ends, when it ends, ms to that, whether a later one stays.
MARK = f"""{_COMMON}
for at, key in ipairs(KEYS) do
  local i = 4 * at - 2
  local before = ARGV[i + 3] == '1' and redis.call('GET', key)
  if not before or tonumber(string.match(before, '^%S+')) <= tonumber(ARGV[i + 1]) then
    redis.call('SET', key, ARGV[i], 'PX', ARGV[i + 2])
  end
end
return {{''}}
"""
# What was spent while Redis was away. Of each counter: step, life in ms, the total that was known
# where Redis has lost it, what comes to it.
ADD = f"""{_COMMON}
for at, key in ipairs(KEYS) do
  local i = 4 * at - 2
  read(key)
  redis.call('HSETNX', key, 'step', ARGV[i])
  local base = tonumber(redis.call('HGET', key, 'base') or '0')
  redis.call('HSET', key, 'base', text(math.max(base, tonumber(ARGV[i + 2]))))
  redis.call('HINCRBYFLOAT', key, 'total', ARGV[i + 3])
  redis.call('PEXPIRE', key, ARGV[i + 1])
end
return {{''}}
"""
# Memories: `KEYS` are the ages (when each was last needed), the sizes, the sum of those, then the
# entries. After the time: oldest that counts, most bytes, ms to live, how many entries; their
# values; the keys that were used again.
KEEP = f"""{_COMMON}
local ages, sizes, whole = KEYS[1], KEYS[2], KEYS[3]
local oldest, most, life, count = ARGV[2], tonumber(ARGV[3]), ARGV[4], tonumber(ARGV[5])
for at = 1, count do
  local key, value = KEYS[at + 3], ARGV[at + 5]
  local before = tonumber(redis.call('HGET', sizes, key) or '0')
  redis.call('SET', key, value, 'PX', life)
  redis.call('ZADD', ages, now, key)
  redis.call('HSET', sizes, key, #value + 200)
  redis.call('INCRBY', whole, #value + 200 - before)
end
for at = count + 4, #KEYS do
  if redis.call('PEXPIRE', KEYS[at], life) == 1 then redis.call('ZADD', ages, now, KEYS[at]) end
end
local function forget(keys)
  for _, key in ipairs(keys) do
    redis.call('DEL', key)
    redis.call('ZREM', ages, key)
    redis.call('DECRBY', whole, redis.call('HGET', sizes, key) or 0)
    redis.call('HDEL', sizes, key)
  end
  return #keys > 0
end
forget(redis.call('ZRANGE', ages, '-inf', oldest, 'BYSCORE', 'LIMIT', 0, 64))
for _ = 1, 16 do
  if tonumber(redis.call('GET', whole) or '0') <= most then break end
  if not forget(redis.call('ZRANGE', ages, 0, 15)) then break end
end
for at = 1, 3 do redis.call('PEXPIRE', KEYS[at], life) end
return {{''}}
"""
