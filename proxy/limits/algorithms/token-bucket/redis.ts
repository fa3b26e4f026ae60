import type { RedisCounts } from '../redis-counts.ts'
import { MAX_DEBT_MS } from './buckets.ts'

/** Rounding error of sums of fractions of a microsecond. */
const ROUNDING_US = 0.01

/**
 * A token bucket in Redis is stored as four numbers: its debt, which is the time in microseconds until it is full again; when it
 * had this debt; since when the bucket has not been full; and the units refunded since. A full bucket has no key.
 *
 * A ticket has four numbers, too: when the units were taken, the debt at that time, since when the bucket has not been full, and the units
 * refunded since. The debt is not added to the time, because a number of that size has no digits left for fractions of a microsecond.
 */
export const bucketInRedis: RedisCounts = {
  keyEnd: ({ windowMs, sharedWindowMs = windowMs }) => `${sharedWindowMs}:bucket`,
  commands: { always: [['TIME'], ['GET'], ['SET', '0', 'PX', '1000'], ['DEL']] },
  // Never needed: a bucket always takes units, so each charge has a ticket.
  ticketOf: () => '',
  addedValues: ({ endsAtMs }, nowMs) => [String((endsAtMs - nowMs) * 1000)],
  lua: {
    common: `
-- The bucket as of now, or nil and an error text where the key holds something else.
local function readBucket(key, nowUs)
  local text = call('GET', key)
  if type(text) == 'table' then return nil, text.err .. ' (GET)' end
  local debtUs, changedUs, sinceUs, givenBackUs = 0, nowUs, nowUs, 0
  -- The clock has been set back: until it is written again, none of the debt would run out.
  local isAhead = false
  if text then
    debtUs, changedUs, sinceUs, givenBackUs = text:match('^(%S+) (%S+) (%S+) (%S+)$')
    debtUs, changedUs, sinceUs, givenBackUs = tonumber(debtUs), tonumber(changedUs), tonumber(sinceUs), tonumber(givenBackUs)
    local sum = debtUs and changedUs and sinceUs and givenBackUs and debtUs + changedUs + sinceUs + givenBackUs
    -- Neither a number nor infinite.
    if not sum or sum - sum ~= 0 then return nil, 'WRONGTYPE not a token bucket' end
    isAhead = changedUs > nowUs
    debtUs = math.max(0, debtUs - math.max(0, nowUs - changedUs))
    if debtUs == 0 then sinceUs, givenBackUs = nowUs, 0 end
  end
  return { debtUs = debtUs, sinceUs = sinceUs, givenBackUs = givenBackUs, isAhead = isAhead }
end

local function writeBucket(key, bucket, nowUs)
  if bucket.debtUs <= 0 then return must('DEL', key) end
  bucket.debtUs = math.min(bucket.debtUs, ${1000 * MAX_DEBT_MS})
  local text = string.format('%.17g %.0f %.0f %.17g', bucket.debtUs, nowUs, bucket.sinceUs, bucket.givenBackUs)
  return must('SET', key, text, 'PX', math.ceil(bucket.debtUs / 1000))
end

-- The units left in a bucket, and the microseconds until there is one more.
local function tell(policy, bucket)
  local quota, windowUs = policy.quota, policy.windowUs
  local unitUs = windowUs / quota
  local left = math.max(0, math.floor((windowUs - bucket.debtUs) / unitUs + 1e-6))
  return left, left >= quota and windowUs or math.ceil((left + 1) * unitUs - (windowUs - bucket.debtUs))
end
`,
    decide: `
function algorithm.count(key, policy, units)
  local windowUs, nowUs = policy.windowUs, readClockUs()
  if not nowUs then return nil, denied end
  local bucket, failure = readBucket(key, nowUs)
  if failure then return nil, failure end
  local before = { debtUs = bucket.debtUs, sinceUs = bucket.sinceUs, givenBackUs = bucket.givenBackUs }
  bucket.debtUs = bucket.debtUs + units * windowUs / policy.quota
  local mostUs = windowUs + policy.delayUs
  if bucket.debtUs > mostUs + ${ROUNDING_US} then
    if bucket.isAhead then writeBucket(key, before, nowUs) end
    return -1 - tell(policy, before), math.ceil(bucket.debtUs - mostUs)
  end
  writeBucket(key, bucket, nowUs)
  if denied then return nil, denied end
  local ticket = string.format('%.0f:%.17g:%.0f:%.17g', nowUs, bucket.debtUs, bucket.sinceUs, bucket.givenBackUs)
  local left, resetUs = tell(policy, bucket)
  return left, resetUs, ticket, before
end

function algorithm.undo(key, policy, _, _, before)
  writeBucket(key, before, readClockUs())
  return tell(policy, before)
end
`,
    settle: `
-- Gives back only what the bucket would certainly hold without the reservation: not the time since, during which it may
-- have been full; or what of the reservation has not been refilled, if all that was given back meanwhile came before it.
-- If the bucket has been full or was reset since, nothing is left of the reservation.
function algorithm.settle(key, policy, units, ticket)
  local nowUs = readClockUs()
  local bucket = nowUs and readBucket(key, nowUs)
  if not bucket then return end
  local amountUs = units * policy.windowUs / policy.quota
  if amountUs < 0 then
    bucket.debtUs = bucket.debtUs - amountUs
  else
    local takenUs, takenDebtUs, sinceUs, givenBackUs = ticket:match('^(%S+):(%S+):(%S+):(%S+)$')
    if not takenUs or tonumber(sinceUs) ~= bucket.sinceUs then return end
    local untilFullUs = takenDebtUs - (nowUs - takenUs)
    local waits = policy.delayUs > 0 and bucket.debtUs > policy.windowUs
    -- Others wait for turns behind it, which would become those of new requests too.
    if waits and untilFullUs < bucket.debtUs - ${ROUNDING_US} then return end
    local backUs
    if waits and untilFullUs <= bucket.debtUs + ${ROUNDING_US} then
      -- The last turn, which is the end of the debt. The debt has not run out since, so no time was lost.
      backUs = math.min(amountUs, bucket.debtUs)
    else
      local surelyUs = amountUs - (nowUs - takenUs)
      local leftUs = untilFullUs - (bucket.givenBackUs - givenBackUs)
      backUs = math.min(amountUs, math.max(0, leftUs, surelyUs))
    end
    bucket.debtUs = bucket.debtUs - backUs
    bucket.givenBackUs = bucket.givenBackUs + backUs
  end
  writeBucket(key, bucket, nowUs)
end
`,
    read: `
function algorithm.read(key, policy)
  local nowUs = readClockUs()
  if not nowUs then return denied end
  local bucket, failure = readBucket(key, nowUs)
  if failure then return failure end
  if bucket.debtUs == 0 then return 0, 0 end
  local left, resetUs = tell(policy, bucket)
  return policy.quota - left, resetUs
end
`,
    add: `
function algorithm.add(key, _, values)
  local nowUs = readClockUs()
  local bucket = nowUs and readBucket(key, nowUs)
  if not bucket then return end
  bucket.debtUs = bucket.debtUs + values[1]
  writeBucket(key, bucket, nowUs)
end
`,
  },
}
