import type { RedisCounts } from '../redis-counts.ts'
import { TRY_AGAIN_MS } from './counts.ts'

const tryAgainUs = TRY_AGAIN_MS * 1000

/**
 * Requests in flight in Redis are a sorted set of their names. The score is the time in milliseconds until which a request is
 * assumed to be in flight, because a gateway that has died cannot report that its requests have ended. The ticket is the name,
 * which takes the place of units.
 */
export const inFlightInRedis: RedisCounts = {
  keyEnd: () => 'in-flight',
  commands: {
    always: [
      ['TIME'],
      ['ZADD', '0', '0'],
      ['ZCARD'],
      ['ZREM', '0'],
      ['ZREMRANGEBYSCORE', '0', '0'],
      ['PEXPIRE', '1000'],
    ],
  },
  // Never needed: a request in flight always has a name, which is its ticket.
  ticketOf: () => '',
  addedValues: () => [],
  lua: {
    decide: `
function algorithm.count(key, policy, name)
  local nowUs = readClockUs()
  if not nowUs then return nil, denied end
  local nowMs = math.floor(nowUs / 1000)
  local gone = call('ZREMRANGEBYSCORE', key, '-inf', nowMs)
  if type(gone) ~= 'number' then return nil, gone.err .. ' (ZREMRANGEBYSCORE)' end
  local held = must('ZCARD', key)
  if denied then return nil, denied end
  if held >= policy.quota then return -1, ${tryAgainUs} end
  must('ZADD', key, nowMs + policy.windowMs, name)
  must('PEXPIRE', key, policy.windowMs)
  if denied then
    call('ZREM', key, name)
    return nil, denied
  end
  return policy.quota - held - 1, ${tryAgainUs}, name
end

function algorithm.undo(key, _, name, remaining)
  must('ZREM', key, name)
  return remaining + 1
end
`,
    settle: `
function algorithm.settle(key, _, _, name)
  local gone = call('ZREM', key, name)
  if type(gone) ~= 'number' then return gone.err end
end
`,
    read: `
function algorithm.read(key)
  local nowUs = readClockUs()
  if not nowUs then return denied end
  local held = call('ZCOUNT', key, math.floor(nowUs / 1000) + 1, '+inf')
  if type(held) == 'table' then return held.err end
  return held, held > 0 and ${tryAgainUs} or 0
end
`,
    // `renew` adds the requests that were admitted without Redis.
    add: 'function algorithm.add() end',
    renew: `
function algorithm.renew(key, policy, name)
  local nowUs = readClockUs()
  if not nowUs then return end
  local untilMs = math.floor(nowUs / 1000) + policy.windowMs
  if type(call('ZADD', key, untilMs, name)) == 'number' then must('PEXPIRE', key, policy.windowMs) end
end
`,
  },
}
