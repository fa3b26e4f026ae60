import { expect, test } from 'vitest'
import { directoryWith, problemsOf } from '../../support/gateway/settings.ts'

const rule = (fields: string): string => `limits:\n  - name: one\n    match: POST /login\n${fields}`
const quota = '    requests: 5\n    window: 1m\n'
const asked = { DECISIONS_PORT: '8081', TRUSTED_PROXIES: '10.0.0.0/8' }

test.each([
  [
    'countStatus',
    `${quota}    countStatus: [401]\n`,
    /countStatus.*counts by the response, which DECISIONS_PORT does not support: an auth request carries neither the body of the request nor the response/,
  ],
  [
    'settle',
    `${quota}    cost: { reserve: 2, settle: header:x-cost }\n`,
    /cost.*has settle, and so counts by the response/,
  ],
  [
    'reserve: json',
    `${quota}    cost: { reserve: json:max_tokens, settle: header:x-cost }\n`,
    /has settle/,
    /has reserve: json, and so reads the body/,
  ],
  [
    'device',
    `${quota}    key: query:user\n    device: { status: 303 }\n`,
    /device.*sets a cookie on the response, which DECISIONS_PORT does not support/,
  ],
  ['concurrency', '    concurrency: 2\n', /concurrency.*counts until the response ends/],
])('a rule with %s is a mistake where it is decided for other proxies', (_, fields, ...messages) => {
  const directory = directoryWith(rule(fields))
  const env = { DEVICE_SECRET: 'x'.repeat(40) }
  expect(problemsOf(env, directory)).toEqual([])
  expect(problemsOf({ ...asked, ...env }, directory)).toEqual(
    messages.map((message) => expect.stringMatching(message) as string),
  )
})

test('a rule that sends requests to a route is a mistake there', () => {
  const directory = directoryWith(
    `routes: [{ name: page, upstream: "http://x" }]\n${rule(`${quota}    over: { route: page }\n`)}`,
  )
  expect(problemsOf({}, directory)).toEqual([])
  expect(problemsOf(asked, directory)).toEqual([
    'sluice.yaml:7: rule "one", over: sends requests to a route, which DECISIONS_PORT does not support: auth requests are not forwarded',
  ])
})

test('rules that do not need the response are valid', () => {
  expect(problemsOf(asked, directoryWith(rule(`${quota}    cost: 2\n`)))).toEqual([])
})

test('somebody must be trusted to ask', () => {
  expect(problemsOf({ DECISIONS_PORT: '8081' })).toEqual([
    'TRUSTED_PROXIES: missing, required with DECISIONS_PORT: the proxies that may ask',
  ])
})

test.each(['8080', '9090'])('the port %s is taken', (port) => {
  expect(problemsOf({ ...asked, DECISIONS_PORT: port })).toEqual([
    `DECISIONS_PORT: got ${port}, needs a different port than PORT and ADMIN_PORT`,
  ])
})
