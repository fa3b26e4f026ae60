import { limits } from '../../../proxy/config/rules/limits.ts'
import { headersOf } from '../../../proxy/http/message/headers.ts'
import type { ConditionSource } from '../../../proxy/limits/conditions/condition-readers.ts'
import { doAtOnce } from '../../../shared/steps.ts'
import { compileConditions } from '../../../proxy/limits/conditions/conditions.ts'
import { claimDetails } from '../../../proxy/limits/keys/tokens/claim-details.ts'
import { noAddressLists } from '../../../proxy/request/addresses/lists/address-lists.ts'
import { readTarget } from '../../../proxy/request/target/target.ts'
import { setGatewayFlags } from '../../../shared/v8-gc.ts'
import { asRead } from '../http/as-read.ts'
import { leastTimeSync } from './least-time.ts'

// Measures what ten conditions cost a request that meets all of them, in a process of its own, and prints the figures as JSON. Measures all
// tables, or only the one that the argument names.

setGatewayFlags()

const REQUESTS = 64
const ROUNDS = 600
const MAX_NS = 1000
const names = [
  'session',
  'theme',
  'lang',
  'cart',
  'currency',
  'region',
  'variant',
  'referrer',
  'plan',
  'x_trace',
]

type Written = { readonly when: readonly object[]; readonly unless?: readonly object[] }

const browser: Written = {
  when: [
    { header: { authorization: 'absent' } },
    { header: { accept: { contains: 'text/html' } } },
    { userAgent: [{ contains: 'mozilla' }, { prefix: 'opera' }] },
    { cookie: { consent: 'present' } },
    { query: { page: 'present' } },
    { ip: ['10.0.0.0/8', '192.0.2.0/24', '2001:db8::/32'] },
    { country: ['DE', 'FR', 'NL'] },
  ],
  unless: [
    { cookie: { session: 'present' } },
    { header: { 'x-internal': ['yes', '1'] } },
    { host: ['status.example.com', '*.internal.example.com'] },
  ],
}

const api: Written = {
  when: [
    { header: { authorization: { prefix: 'Bearer ' } } },
    { header: { accept: 'application/json' } },
    { header: { 'content-type': { prefix: 'application/json' } } },
    { jwt: { plan: ['free', 'trial'] } },
    { query: { fields: { contains: 'history' } } },
    { host: 'api.example.com' },
    { asn: ['AS64496', 'AS64497'] },
  ],
  unless: [
    { jwt: { roles: 'admin' } },
    { header: { 'x-api-version': ['2', '3'] } },
    { userAgent: { prefix: 'monitor/' } },
  ],
}

const tables: Readonly<Record<string, Written>> = {
  browser,
  api,
  headers: { when: names.map((name) => ({ header: { [`x-${name}`]: [`${name}-1`, { prefix: 'v' }] } })) },
  cookies: { when: names.map((name) => ({ cookie: { [name]: `${name}-1` } })) },
  parameters: { when: names.map((name) => ({ query: { [name]: `${name}-1` } })) },
}

const parts = (separator: string): string => names.map((name) => `${name}=${name}-1`).join(separator)

/** A request that meets all conditions of the table, with strings that no other request has. */
function requestFor(table: string, i: number): ConditionSource {
  const isApi = table === 'api'
  const host = isApi ? 'api.example.com' : 'www.example.com'
  const lines: (readonly [string, string])[] = [
    ['Host', host],
    [
      'User-Agent',
      `Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/1${i}.0 Safari/537`,
    ],
    [
      'Accept',
      isApi ? 'application/json' : `text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.${i}`,
    ],
    ['Accept-Encoding', 'gzip, deflate, br'],
    ['Accept-Language', 'de,en-US;q=0.7,en;q=0.3'],
    [
      'Cookie',
      table === 'cookies'
        ? `${parts('; ')}; id=${i}`
        : `consent=yes-${i}; theme=dark; _ga=GA1.1.${i}.1700000000`,
    ],
  ]
  if (isApi)
    lines.push(
      ['Authorization', `Bearer eyJh.eyJz${i}.c2ln`],
      ['Content-Type', 'application/json; charset=utf-8'],
      ['X-Api-Version', '1'],
    )
  if (table === 'headers') for (const name of names) lines.push([`X-${name}`, `${name}-1`])
  const query = table === 'parameters' ? parts('&') : `page=${i}&fields=history&sort=date`
  const target = readTarget('GET', `/articles/${i}?${query}`)
  if (typeof target === 'string') throw new Error(target)
  const address = i % 2 === 0 ? `10.${i}.0.${i}` : `2001:db8:${i.toString(16)}::1`
  const details = claimDetails({ plan: 'free', roles: ['user', 'editor'] }, ['plan', 'roles'])
  const rawHeaders = asRead(lines.flat())
  return {
    client: { address, prefix: address },
    host,
    target,
    geo: { find: (field) => (field === 'country' ? 'DE' : 'AS64496') },
    claims: isApi ? [Object.assign(new Map<string, string>(), { details })] : undefined,
    headers: headersOf(rawHeaders),
    rawHeaders,
  }
}

/** Nanoseconds per call in the fastest of many rounds, as other load on the machine only ever adds to a time. */
function nanosecondsOf(calls: number, round: () => void): number {
  let fastest = Infinity
  for (let i = 0; i < ROUNDS; i++) {
    const startedMs = performance.now()
    round()
    fastest = Math.min(fastest, ((performance.now() - startedMs) * 1e6) / calls)
  }
  return fastest
}

type Figures = {
  readonly conditionsNs: number
  /** The time of `thousandSteps`, measured together with the conditions. */
  readonly stepsNs: number
}

/** Measures until the conditions cost less than a microsecond, or than `thousandSteps` if that takes longer. */
function measure(table: string, written: Written): Figures {
  const rules = limits.parse([{ name: 'r', match: 'GET /*', requests: 1, window: '1m', ...written }])
  const conditions = doAtOnce(compileConditions(rules, { files: noAddressLists, wallNow: () => 0 }))
  const policies = rules.map(({ policy }) => policy)
  const sources = Array.from({ length: REQUESTS }, (_, i) => requestFor(table, i))
  const meetAll = (): void => {
    for (const source of sources)
      if (conditions?.applying(policies, source) !== policies)
        throw new Error(`${table}: not all conditions are met`)
  }
  let stepsNs = Infinity
  const conditionsNs = leastTimeSync(
    () => (stepsNs === Infinity ? MAX_NS : Math.max(MAX_NS, stepsNs)),
    () => {
      stepsNs = Math.min(stepsNs, nanosecondsOf(1, thousandSteps))
      return nanosecondsOf(REQUESTS, meetAll)
    },
  )
  return { conditionsNs, stepsNs }
}

/** Takes a thousand steps, each of which depends on the one before: a microsecond at four billion cycles a second. */
function thousandSteps(): void {
  let value = 1
  for (let i = 0; i < 1000; i++) value = (Math.imul(value, 1_664_525) + 1_013_904_223) | 0
  if (value === 0) throw new Error('never')
}

const [only] = process.argv.slice(2)
const figures = Object.entries(tables)
  .filter(([table]) => only === undefined || table === only)
  .map(([table, written]) => [table, measure(table, written)] as const)
process.stdout.write(`${JSON.stringify(Object.fromEntries(figures))}\n`)
