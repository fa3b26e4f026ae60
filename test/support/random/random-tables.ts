import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import type { GatewaySettings } from '../../../proxy/config/settings.ts'
import { DEVICE_SECRET } from '../gateway/every-kind.ts'
import { TOKEN_SECRET, writeTableFiles } from '../gateway/table-files.ts'
import {
  condition,
  headOf,
  limitsOf,
  loadTable,
  network,
  oneOrTwo,
  rarely,
  request,
  rule,
  settingsOfTable,
  textTest,
  withoutMistakes,
  type RandomRequest,
} from './random-requests.ts'

// Random tables with rules of all kinds, and random requests with bodies and tokens for them.

const files = writeTableFiles()

const country = fc.constantFrom('DE', 'FR', 'unknown')
const asn = fc.constantFrom('AS64496', 'AS64497', 'unknown')
const fileList = fc.constant({ ip: { file: files.list } })
const claim = fc.constantFrom('sub', 'plan')
const anyCondition = fc.oneof(
  condition,
  fileList,
  network.map((each) => ({ ip: [each, 'private', { file: files.list }] })),
  fc.uniqueArray(country, { minLength: 1, maxLength: 2 }).map((each) => ({ country: each })),
  asn.map((each) => ({ asn: each })),
  fc.tuple(claim, textTest).map(([name, test]) => ({ jwt: { [name]: test } })),
)
const conditions = oneOrTwo(anyCondition)

const account = fc.constantFrom(
  'body:email',
  'body:user.email',
  'body:id as integer',
  'query:user',
  'header:x-key',
)
const sent = fc.oneof(account, fc.constantFrom('jwt:sub', 'header:authorization', 'cookie:sid'))
const always = fc.constantFrom('ip', 'ip/24/48', 'country', 'asn', 'host')
const key = fc.oneof(
  account,
  sent,
  always,
  fc.tuple(sent, always),
  fc.uniqueArray(sent, { minLength: 2, maxLength: 3 }),
  fc
    .tuple(fc.uniqueArray(sent, { minLength: 1, maxLength: 2 }), always)
    .map(([some, last]) => ({ first: [...some, last] })),
)
const count = fc.integer({ min: 1, max: 9 })
const quotas = fc.dictionary(fc.constantFrom('free', 'pro', 'constructor'), count, {
  minKeys: 1,
  maxKeys: 3,
  noNullPrototype: true,
})

/** Fields that make a rule more than a number of requests in a window. The fields of each record fit together. */
const kinds = fc.oneof(
  fc.record({ key }),
  fc.record({
    key: fc.oneof(
      account,
      fc.tuple(account, fc.constant('host')),
      account.map((each) => ({ first: [each, 'ip'] })),
    ),
    countStatus: rarely(fc.constant([401])),
    device: fc.record({ status: fc.constant(['2xx']) }),
  }),
  fc.record({
    key: fc.constantFrom('body:email', { first: ['body:email', 'ip'] }),
    overrides: fc.tuple(count, count).map(([one, other]) => [
      { requests: one, clients: [{ ip: '127.0.0.9' }, { 'body:email': 'b@x' }] },
      { requests: other, clients: { 'body:email': 'anna@example.com' } },
    ]),
  }),
  fc.record({
    key,
    window: fc.constantFrom('hour', 'day', 'week', 'month'),
    timezone: rarely(fc.constantFrom('Europe/Berlin', 'America/St_Johns')),
    algorithm: rarely(fc.constant('fixed')),
  }),
  fc.record({ key, plans: quotas, plan: fc.constantFrom('jwt:plan', 'jwt:plan', 'store') }),
  fc.record({ key, over: fc.constant({ route: 'elsewhere' }) }),
  fc.record({
    key,
    algorithm: fc.constant('token-bucket'),
    over: fc.constant({ delay: '30s', waiting: 3 }),
    burst: rarely(count),
  }),
  fc.record({ key, algorithm: fc.constant('sliding') }),
  fc.record({
    key,
    requests: fc.integer({ min: 3, max: 9 }),
    cost: fc.constantFrom<unknown>(3, { reserve: 'json:n', settle: 'header:cost' }),
  }),
)
const conditional = fc.record({ when: rarely(conditions), unless: rarely(conditions) })
const ruleOfAnyKind = fc.tuple(rule, kinds, conditional).map(([plain, kind, more]): object => ({
  ...plain,
  ...kind,
  ...more,
  // A rule by the body needs a method that has a body.
  match: [...plain.match, 'POST /login/*'],
}))

export const fileOfEveryKind = fc
  .record({
    ...settingsOfTable,
    timezone: rarely(fc.constant('Asia/Kathmandu')),
    jwt: fc.constant({ secretFile: files.tokenSecret }),
    geoip: fc.constant({ country: files.country, asn: files.asn }),
    routes: fc.constant([{ name: 'elsewhere', onlyOver: true, upstream: 'http://127.0.0.1:1' }]),
    limits: limitsOf(ruleOfAnyKind, 8),
  })
  .map(withoutMistakes)

/** Does what `loadTable` does. */
export function loadTableOfEveryKind(written: Parameters<typeof loadTable>[0]): GatewaySettings | undefined {
  return loadTable(written, undefined, { DEVICE_SECRET })
}

function tokenOf(claims: object, secret = TOKEN_SECRET): string {
  const [head, payload] = [{ alg: 'HS256' }, claims].map((each) =>
    Buffer.from(JSON.stringify(each)).toString('base64url'),
  )
  const signed = `${head}.${payload}`
  return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`
}

const bearer = fc
  .constantFrom(
    tokenOf({ sub: 'a', plan: 'free' }),
    tokenOf({ sub: 'secret', plan: 'pro' }),
    tokenOf({ sub: 'a', plan: 'pro' }),
    tokenOf({ sub: 'a', plan: 'gold' }),
    tokenOf({ sub: 'a', plan: 'constructor' }),
    tokenOf({ sub: 'a', plan: '__proto__' }),
    tokenOf({ sub: 'a', plan: 'pro', exp: 1 }),
    tokenOf({ plan: ['pro'] }),
    tokenOf({ sub: 'a' }, 'the secret of somebody else, which is as long'),
  )
  .map((token) => `Authorization: Bearer ${token}`)

type Body = { readonly type: string; readonly text: string }

const parts = (...fields: string[]): string =>
  fields
    .map((field) => `--b\r\nContent-Disposition: form-data; name="${field}"\r\n\r\nanna@example.com\r\n`)
    .join('') + '--b--\r\n'
const body: fc.Arbitrary<Body> = fc.oneof(
  fc.record({
    type: fc.constant('application/json'),
    text: fc.constantFrom('{"email":"anna@example.com","n":2}', '{"email":"b@x","id":7}'),
  }),
  fc.record({
    type: fc.constantFrom('application/json', 'application/json; charset=utf-8', 'text/plain', ''),
    text: fc.constantFrom(
      '{"email":"ANNA@example.com","user":{"email":"b@x"},"id":7}',
      '{"email":"a@x","email":"b@x"}',
      '[{"email":"a@x"},{"email":"a@x"},{"email":"anna@example.com"},{}]',
      '{"email":null,"n":-1}',
      '{"email":"\\u0061@x","id":"7a"}',
      '{"emäil":"ä@x","email":"ä@x"}',
      '{"email":',
      '{}',
      'null',
    ),
  }),
  fc.record({
    type: fc.constantFrom('application/x-www-form-urlencoded', ''),
    text: fc.constantFrom(
      'email=anna%40example.com',
      'email=a@x&email=b@x',
      'user[email]=a@x&id=7',
      'email[]=a@x&EMAIL=b@x',
      'email',
      'a=b',
    ),
  }),
  fc.record({
    type: fc.constantFrom('multipart/form-data; boundary=b', 'multipart/form-data'),
    text: fc.constantFrom(parts('email'), parts('email', 'user.email'), parts('other'), '--b'),
  }),
  fc.constant({ type: 'application/json', text: `{"pad":"${'x'.repeat(70_000)}","email":"a@x"}` }),
)

export type RandomRequestWithBody = RandomRequest & {
  readonly body: Body | undefined
  readonly isChunked: boolean
  /** Whether the request has the devices of all accounts that earlier requests to the same table have signed in to. */
  readonly hasDevices: boolean
}

/** A sign-in that each rule of these tables counts, unless something else prevents it. */
const signIn: fc.Arbitrary<RandomRequest> = fc.record({
  asked: fc.tuple(fc.constant('POST'), fc.constantFrom('/login', '/login?user=1')),
  hosts: fc.constant(['app.example.com']),
  lines: fc.subarray(['x-key: secret', 'Cookie: sid=1']),
  from: fc.constantFrom('127.0.0.1', '127.0.0.2', '127.0.0.9'),
})

export const requestOfAnyKind: fc.Arbitrary<RandomRequestWithBody> = fc
  .tuple(
    fc.oneof({ weight: 3, arbitrary: signIn }, request),
    fc.option(bearer, { nil: undefined, freq: 3 }),
    fc.record({
      body: fc.option(body, { nil: undefined, freq: 5 }),
      isChunked: fc.boolean(),
      hasDevices: fc.boolean(),
    }),
  )
  .map(([asked, token, more]) => ({
    ...asked,
    ...more,
    lines: token === undefined ? asked.lines : [...asked.lines, token],
  }))

/** Returns the request line and headers of a request, and its body as it is sent. */
export function bytesOf({ body: sent, isChunked, ...asked }: RandomRequestWithBody): {
  readonly head: string
  readonly content: string
} {
  if (!sent) return { head: headOf(asked), content: '' }
  const text = Buffer.from(sent.text).toString('latin1')
  const framing = isChunked ? 'Transfer-Encoding: chunked' : `Content-Length: ${text.length}`
  const type = sent.type === '' ? [] : [`Content-Type: ${sent.type}`]
  return {
    head: headOf({ ...asked, lines: [...asked.lines, ...type, framing] }),
    content: isChunked ? `${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n` : text,
  }
}
