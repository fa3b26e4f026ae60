import fc from 'fast-check'
import { SettingsError } from '../../../shared/settings/settings-error.ts'
import type { GatewaySettings } from '../../../proxy/config/settings.ts'
import { loadWithFile } from '../gateway/settings.ts'

// Random tables of limits, and random requests that often match them and often have several readings.

// sha256 of `secret`
const sha256 = 'sha256:2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b'

const name = fc.constantFrom('a', 'b', 'login', 'c.d')
const methods = fc.constantFrom('*', 'GET', 'POST', 'GET,POST', 'OPTIONS', 'PUT')
const segments = fc.array(fc.oneof(name, fc.constant(':id')), { maxLength: 3 })
const pattern = fc
  .tuple(methods, segments, fc.boolean())
  .filter(([, names]) => names.filter((each) => each === ':id').length < 2)
  .map(([by, names, rest]) => `${by} /${[...names, ...(rest ? ['*'] : [])].join('/')}`)
const patterns = fc.array(pattern, { minLength: 1, maxLength: 3 })
const part = fc.constantFrom(
  'ip',
  'ip/24/48',
  'host',
  'header:x-key',
  'header:authorization',
  'cookie:sid',
  'query:user',
)
const key = fc.oneof(
  fc.constant('ip'),
  fc.constantFrom('ip', 'ip/24/48', 'global', 'path:id'),
  part,
  fc.uniqueArray(part, { minLength: 2, maxLength: 3 }),
  fc.uniqueArray(part, { minLength: 2, maxLength: 3 }).map((first) => ({ first })),
)
export const network = fc.constantFrom('127.0.0.2', '127.0.0.0/30', '192.0.2.0/24', '2001:db8::/32')
const listEntry = fc.oneof(
  network.map((ip) => ({ ip })),
  fc.constant({ header: { 'x-key': sha256 } }),
)
const list = fc.array(listEntry, { minLength: 1, maxLength: 2 })
const overrideClients = fc.array(
  fc.oneof(
    network.map((ip) => ({ ip })),
    fc.constant({ 'header:x-key': sha256 }),
  ),
  { minLength: 1, maxLength: 2 },
)
const hosts = fc.uniqueArray(fc.constantFrom('app.example.com', '*.example.com', 'other.test'), {
  minLength: 1,
  maxLength: 2,
})
export const textTest = fc.constantFrom(
  'absent',
  'present',
  '1',
  'secret',
  { prefix: 's' },
  { contains: 'e' },
)
export const condition = fc.oneof(
  textTest.map((test) => ({ header: { 'x-key': test } })),
  textTest.map((test) => ({ cookie: { sid: test } })),
  textTest.map((test) => ({ query: { user: [test, '2'] } })),
  textTest.map((userAgent) => ({ userAgent })),
  network.map((ip) => ({ ip })),
  fc.constantFrom('app.example.com', '*.example.com').map((host) => ({ host })),
)
export const oneOrTwo = <Condition>(each: fc.Arbitrary<Condition>) =>
  fc.uniqueArray(each, { minLength: 1, maxLength: 2, selector: (one) => JSON.stringify(one) })
const conditions = oneOrTwo(condition)
/** Leaves a field out more often than not. */
export const rarely = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: undefined, freq: 2 })
export const rule = fc.record({
  match: patterns,
  except: rarely(patterns),
  hosts: rarely(hosts),
  when: rarely(conditions),
  unless: rarely(conditions),
  key,
  requests: fc.integer({ min: 1, max: 9 }),
  window: fc.constant('1m'),
  mode: fc.constantFrom('enforce', 'shadow'),
  allowList: rarely(list),
  overrides: rarely(
    fc.array(fc.record({ clients: overrideClients, requests: fc.integer({ min: 1, max: 9 }) }), {
      maxLength: 2,
    }),
  ),
})
/** The settings of a table other than its rules. */
export const settingsOfTable = {
  trustedProxies: rarely(fc.uniqueArray(network, { minLength: 1, maxLength: 2 })),
  clientAddressHeader: rarely(fc.constant('CF-Connecting-IP')),
  ipv6Prefix: rarely(fc.constantFrom(48, 128)),
  cors: rarely(fc.constant({ origins: ['https://app.example.com'] })),
  allowList: rarely(list),
  denyList: rarely(list),
}
export const limitsOf = <Fields extends object>(each: fc.Arbitrary<Fields>, minLength = 1) =>
  fc
    .array(each, { minLength, maxLength: minLength + 7 })
    .map((rules) => rules.map((fields, i) => ({ name: `r${i}`, ...fields })))
export const file = fc.record({ ...settingsOfTable, limits: limitsOf(rule) }).map(withoutMistakes)

type Listed = { readonly trustedProxies?: unknown; readonly allowList?: unknown; readonly denyList?: unknown }

/** Leaves out settings that conflict with others of the table. */
export function withoutMistakes<Table extends Listed>(table: Table): Table {
  const { trustedProxies, allowList, denyList } = table
  return {
    ...table,
    ...(trustedProxies === undefined && { clientAddressHeader: undefined }),
    ...(allowList !== undefined && denyList !== undefined && { allowList: undefined }),
  }
}

const spelled = fc.oneof(
  { weight: 4, arbitrary: name },
  fc.constantFrom('LOGIN', '%6cogin', '..', '.', '', 'a;x=1', 'b%2Flogin', 'z', '%5C', '%', 'a%3Fb'),
)
const query = fc.constantFrom('', '', '?user=1', '?user=1&user=2', '?USER=1', '?user=%31', '?x')
const target = fc.oneof(
  {
    weight: 9,
    arbitrary: fc
      .tuple(fc.array(spelled, { maxLength: 3 }), query)
      .map(([names, end]) => `/${names.join('/')}${end}`),
  },
  fc.constantFrom('*', 'http://app.example.com/a', '/http://x/', 'a'),
)
const address = fc.constantFrom(
  '192.0.2.1',
  '2001:db8::1',
  '2001:db8:0:1::1',
  'unknown',
  '127.0.0.2',
  '1.2.3.4, 127.0.0.2',
)
const line = fc.oneof(
  fc
    .tuple(fc.constantFrom('X-Forwarded-For', 'CF-Connecting-IP', 'x-forwarded-for'), address)
    .map((each) => each.join(': ')),
  fc.constantFrom('x-key: secret', 'X-Key: secret ', 'x-key: other', 'x-key:'),
  fc.constantFrom('Authorization: Bearer x', 'authorization: bearer  x', 'Authorization: Basic eDp5'),
  fc.constantFrom('Cookie: sid=1', 'cookie: sid=1; sid=2', 'Cookie: other=1'),
  fc.constantFrom('X-HTTP-Method-Override: PUT', 'X-HTTP-Method: a, b'),
  fc.constantFrom('Origin: https://app.example.com', 'Access-Control-Request-Method: PUT'),
  fc.constantFrom(
    'Expect: 100-continue',
    'Expect: x',
    'Max-Forwards: 0',
    'Content-Length: 0',
    'Upgrade: websocket',
  ),
  fc.constant(
    'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==',
  ),
)
const host = fc.constantFrom(
  'app.example.com',
  'APP.example.com.',
  'x.y.example.com:80',
  'other.test',
  '',
  'a b',
  '[::1]',
)
const asked = fc.tuple(fc.constantFrom('GET', 'POST', 'HEAD', 'OPTIONS', 'PUT', 'TRACE', 'get'), target)
export type RandomRequest = {
  readonly asked: readonly [method: string, target: string]
  readonly hosts: readonly string[]
  readonly lines: readonly string[]
  /** The address of the connection. */
  readonly from: string
}

export const request: fc.Arbitrary<RandomRequest> = fc.record({
  asked: fc.oneof({ weight: 15, arbitrary: asked }, fc.constant(['OPTIONS', '*'] as const)),
  hosts: fc.oneof({ weight: 8, arbitrary: host.map((only) => [only]) }, fc.array(host, { maxLength: 2 })),
  lines: fc.array(line, { maxLength: 5 }),
  from: fc.constantFrom('127.0.0.1', '127.0.0.2', '127.0.0.9'),
})

/** A usual request: rules of such tables often count it, and often for the same clients. */
export const plainRequest: fc.Arbitrary<RandomRequest> = fc.record({
  asked: fc.tuple(
    fc.constantFrom('GET', 'POST'),
    fc
      .tuple(fc.array(name, { maxLength: 2 }), fc.constantFrom('', '?user=1'))
      .map(([names, end]) => `/${names.join('/')}${end}`),
  ),
  hosts: fc.constantFrom(['app.example.com'], ['x.example.com'], ['other.test']),
  lines: fc.subarray(['x-key: secret', 'Authorization: Bearer x', 'Cookie: sid=1']),
  from: fc.constantFrom('127.0.0.1', '127.0.0.9'),
})

/** Returns the request line and headers of a request. */
export function headOf({ asked, hosts: named, lines }: RandomRequest): string {
  const fields = [...named.map((each) => `Host: ${each}`), ...lines].map((each) => `${each}\r\n`)
  return `${asked.join(' ')} HTTP/1.1\r\n${fields.join('')}\r\n`
}

type WrittenTable = { readonly limits: readonly { readonly name: string }[] }

/** Loads a table without its invalid rules. Returns undefined if another part of the table is invalid, or if no rule is left. */
export function loadTable(
  written: WrittenTable,
  upstreamUrl = 'http://127.0.0.1:1',
  more: Readonly<Record<string, string>> = {},
): GatewaySettings | undefined {
  try {
    const env = {
      UPSTREAM_URL: upstreamUrl,
      PORT: '0',
      ADMIN_PORT: '0',
      UPSTREAM_CONNECT_TIMEOUT: '1s',
      ...more,
    }
    return loadWithFile(JSON.stringify(written), env).settings
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error
    const wrong = error.problems.map((problem) => /: rule "(.+?)"/.exec(problem)?.[1])
    const limits = written.limits.filter(({ name: each }) => !wrong.includes(each))
    const isMended = limits.length > 0 && limits.length < written.limits.length && !wrong.includes(undefined)
    return isMended ? loadTable({ ...written, limits }, upstreamUrl, more) : undefined
  }
}
