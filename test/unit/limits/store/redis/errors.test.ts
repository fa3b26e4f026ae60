import { describe, expect, test } from 'vitest'
import {
  errorCodeOf,
  hasCountedNothing,
  isMoving,
  isOfOneCounter,
  isOfReplica,
  lacksRight,
  reasonOf,
} from '../../../../../proxy/limits/store/redis/errors.ts'

/*
 * Engines format command errors in many ways, especially errors from scripts. A search at the beginning of the text found `READONLY` on
 * Redis 7 and never on Redis 6.2 and KeyDB, so gateways stayed with a master that had become a replica.
 */

const sha = 'da8455f0535fd532821b3713a4eccd80fc4b8457'

/** Redis's text after the error code, as seen with Redis 6.0, 6.2, 7.0 and 8.0 and Valkey 9.1. */
const texts: Readonly<Record<string, string>> = {
  READONLY: "You can't write against a read only replica.",
  LOADING: 'Redis is loading the dataset in memory',
  MASTERDOWN: "Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
  NOSCRIPT: 'No matching script. Please use EVAL.',
  BUSY: 'Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.',
  OOM: "command not allowed when used memory > 'maxmemory'.",
  CLUSTERDOWN: 'The cluster is down',
  MOVED: '3999 127.0.0.1:6381',
  ASK: '3999 127.0.0.1:6381',
  TRYAGAIN: 'Multiple keys request during rehashing of slot',
  CROSSSLOT: "Keys in request don't hash to the same slot",
  NOAUTH: 'Authentication required.',
  WRONGPASS: 'invalid username-password pair or user is disabled.',
  NOPERM: "this user has no permissions to run the 'incr' command",
  MISCONF: 'Errors writing to the AOF file: No space left on device',
  NOREPLICAS: 'Not enough good replicas to write.',
  WRONGTYPE: 'Operation against a key holding the wrong kind of value',
}

/** The forms of the same error, by engine and by the way it leaves a script. */
const forms: Readonly<Record<string, (error: string) => string>> = {
  'outside a script': (error) => error,
  'with its dash': (error) => `-${error}`,
  'Redis 6.2 and KeyDB, pcall': (error) => `@user_script: 106: -${error}\r\n`,
  'Redis 6.2 and KeyDB, pcall, with the command': (error) => `@user_script: 106: -${error}\r\n (INCR)`,
  'Redis 6.2 and KeyDB, call': (error) =>
    `ERR Error running script (call to f_${sha}): @user_script:1: @user_script: 1: -${error}`,
  'Redis 6.2 and KeyDB, call, of a reply': (error) =>
    `ERR Error running script (call to f_${sha}): @user_script:1: ${error}`,
  'Redis 6.2, as a relay passes it on': (error) => `-ERR @user_script: 1: -${error}`,
  'Redis 7.0 and 8, call': (error) => `${error} script: ${sha}, on @user_script:1.`,
  'Redis 7.0, function': (error) => `${error} script: f_${sha}, on @user_script:12.`,
  'Valkey 8 and 9, call': (error) => `${error} script: on @user_script:1.`,
  'Redis 7, pcall, with the command': (error) => `${error} (INCR)`,
  Dragonfly: (error) => `ERR Error running script (call to ${sha}): @user_script:1: ${error}`,
}

const everyForm = Object.entries(forms).flatMap(([form, write]) =>
  Object.entries(texts).map(([code, text]) => ({ form, code, text: write(`${code} ${text}`) })),
)

describe('the code of an error', () => {
  test.for(everyForm)('$code is read: $form', ({ code, text }) => {
    expect(errorCodeOf(text)).toBe(code)
    const error = replyError(text)
    expect(errorCodeOf(error)).toBe(code)
    expect(isOfReplica(error)).toBe(code === 'READONLY' || code === 'MASTERDOWN')
    expect(lacksRight(error)).toBe(code === 'NOPERM')
    expect(isMoving(error)).toBe(code === 'TRYAGAIN')
    expect(isOfOneCounter(error)).toBe(code === 'WRONGTYPE')
  })

  test.for(everyForm)('the log has it in the same words: $code, $form', ({ code, text }) => {
    expect(reasonOf(text).replace(' (INCR)', '')).toBe(`${code} ${texts[code]}`)
  })

  test.for([
    ["@user_script: 1: The user executing the script can't run this command or subcommand", 'NOPERM'],
    ["ERR The user executing the script can't run this command or subcommand (INCR)", 'NOPERM'],
    ["ERR The user executing the script can't access at least one of the keys mentioned", 'NOPERM'],
    ["ERR ACL failure in script: User u has no permissions to run the 'incr' command (INCR)", 'NOPERM'],
    [
      `ERR ACL failure in script: User u has no permissions to access the 'k' key script: ${sha}, on @user_script:1.`,
      'NOPERM',
    ],
    ['@user_script: 1: Script attempted to access a non local key in a cluster node', 'MOVED'],
    ['@user_script: 1: Lua script attempted to access a non local key in a cluster node', 'MOVED'],
    [
      'ERR Script attempted to access a non local key in a cluster node script: on @user_script:1. (INCR)',
      'MOVED',
    ],
    ['ERR Attempted to access a non local key in a cluster node (INCR)', 'MOVED'],
    ['ERR Attempted to access a non local key in a cluster node script: on @user_script:1.', 'MOVED'],
    ['script tried accessing undeclared key', 'UNDECLARED'],
    ['ERR Script attempted to access a non local key in a cluster node script: on @user_script:1.', 'MOVED'],
    ['ERR Script attempted to access keys that do not hash to the same slot', 'CROSSSLOT'],
    ['ERR invalid password', 'WRONGPASS'],
    ['ERR value is not an integer or out of range', 'ERR'],
  ] as const)('words that stand for a code: %s', ([text, code]) => {
    expect(errorCodeOf(text)).toBe(code)
  })

  test.for([
    'ERR wrong key sluice:1:{READONLY }:x',
    'ERR unknown command `READONLY`, with args beginning with: NOPERM',
    "WRONGTYPE at READONLY You can't write",
    'connect ECONNREFUSED 127.0.0.1:6379',
    'no answer in 100 ms',
    'readonly in small letters',
    '',
  ])('the code of an error is not looked for after the beginning: %j', (text) => {
    expect(isOfReplica(text)).toBe(false)
    expect(lacksRight(text)).toBe(false)
    expect(errorCodeOf(text)).not.toMatch(/^(READONLY|NOPERM|MOVED)$/)
  })
})

describe('requests that may have been counted', () => {
  test('none, if Redis refused the command', () => {
    for (const code of Object.keys(texts)) expect(hasCountedNothing(replyError(`${code} text`))).toBe(true)
  })

  test('perhaps something, where the script had begun', () => {
    expect(hasCountedNothing(replyError(forms['Redis 6.2 and KeyDB, call']?.('READONLY x') ?? ''))).toBe(
      false,
    )
    expect(hasCountedNothing(replyError(forms['Redis 7.0 and 8, call']?.('OOM x') ?? ''))).toBe(false)
    expect(hasCountedNothing(new Error('Connection is closed.'))).toBe(false)
  })
})

test('the log does not speak of options of a library', () => {
  const lost = new Error(
    'Reached the max retries per request limit (which is 0). Refer to "maxRetriesPerRequest" option for details.',
  )
  const unsent = new Error("Stream isn't writeable and enableOfflineQueue options is false")
  expect([lost, unsent].map(reasonOf)).toEqual(['connection lost', 'not connected'])
})

function replyError(text: string): Error {
  return Object.assign(new Error(text), { name: 'ReplyError' })
}
