/**
 * The part of Redis's scripts that knows token buckets. It needs `callsLua`, and `nowUs`, Redis's clock in microseconds.
 *
 * What is kept of a bucket is its debt, in microseconds until it is full again, when the debt was that, since when the
 * bucket has not been full, and what of it has been given back since then. A full bucket has no key.
 */
export const bucketsLua = `
-- The bucket as of now, or nil and an error text where the key holds something else.
local function readBucket(key)
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

local function writeBucket(key, bucket)
  if bucket.debtUs <= 0 then return must('DEL', key) end
  local text = string.format('%.17g %.0f %.0f %.17g', bucket.debtUs, nowUs, bucket.sinceUs, bucket.givenBackUs)
  return must('SET', key, text, 'PX', math.ceil(bucket.debtUs / 1000))
end
`

/** What sums of fractions of a microsecond can be off. */
export const ROUNDING_US = 0.01
