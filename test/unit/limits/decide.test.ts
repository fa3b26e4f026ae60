import { expect, test } from 'vitest'
import type { ClientRequest } from '../../../proxy/http/message/client-request.ts'
import { ClientEntries } from '../../../proxy/limits/clients/client-entries.ts'
import type { ClientEntry } from '../../../proxy/limits/clients/client-entry.ts'
import { decideRequest } from '../../../proxy/limits/decide.ts'
import type { RequestContext, DecideOptions } from '../../../proxy/limits/verdict.ts'
import { createUnservedRequest } from '../../../proxy/limits/explain/unserved-request.ts'
import type { Charge, Decision } from '../../../proxy/limits/limiter.ts'
import { compileTable } from '../../../proxy/limits/request-table.ts'
import { createAddressReader } from '../../../proxy/request/addresses/client-address.ts'
import { noAddressLists } from '../../../proxy/request/addresses/lists/address-lists.ts'
import { loadWithFile } from '../../support/gateway/settings.ts'

const { settings } = loadWithFile(`
allowList: [{ ip: 192.0.2.99 }]
denyList: [{ ip: 192.0.2.66 }]
limits:
  - { name: login, match: '* /login', requests: 5, window: 1m }
  - { name: query, match: GET /query, key: 'query:user', requests: 5, window: 1m }
  - { name: tokens, match: POST /tokens, requests: 100, window: 1m, cost: { reserve: json:max_tokens, settle: 'header:x-cost' } }
`)
const addresses = createAddressReader([])
const compiled = compileTable(settings, addresses, noAddressLists)
const allowed: Decision = { outcome: 'allowed', states: [] }

const banOfAddress = { kind: 'ban', parts: '', by: 'operator' } as const
const banOfRule = { kind: 'ban', policy: 'login', by: 'operator' } as const

type Case = {
  readonly method?: string
  readonly target?: string
  readonly contentType?: string
  readonly ip?: string
  readonly entries?: readonly ClientEntry[]
  readonly options?: Partial<DecideOptions>
  readonly context?: Partial<RequestContext>
}

/** Decides with a limiter that records its arguments. */
function decide({
  method = 'GET',
  target = '/',
  contentType,
  ip = '192.0.2.1',
  entries = [],
  options,
  context: facts,
}: Case) {
  const charged: (readonly Charge[])[] = []
  const known = new ClientEntries(() => 0)
  for (const entry of entries) known.set(entry, 60_000)
  const peer = addresses.readPeer(ip)
  if (!peer) throw new Error('invalid address')
  const headers = { host: 'a.example.com', ...(contentType !== undefined && { 'content-type': contentType }) }
  const request = {
    method,
    url: target,
    httpVersion: '1.1',
    httpVersionMajor: 1,
    rawHeaders: ['host', 'a.example.com'],
    headers,
  } as Partial<ClientRequest> as ClientRequest
  const limiter: DecideOptions['limiter'] = {
    decide(charges) {
      charged.push(charges)
      return allowed
    },
  }
  const context = { ...createUnservedRequest(request, peer, compiled.head), ...facts }
  const active = {
    ...compiled.limits,
    entries: known,
    tokens: undefined,
    readsBodies: false,
    limiter,
    ...options,
  }
  return { verdict: decideRequest(context, active), charged, context }
}

test('a query of ASCII beside a charset of which ASCII is a part counts for its client', () => {
  const asked: Case = { target: '/query?user=a', contentType: 'text/xml; charset=windows-1251' }
  expect(decide(asked).charged).toEqual(decide({ target: '/query?user=a' }).charged)
})

test.each<[string, Case, object]>([
  ['a malformed request is rejected', { target: '/%' }, { outcome: 'rejected', rejection: 'target' }],
  ['TRACE is rejected', { method: 'TRACE' }, { outcome: 'rejected', rejection: 'other' }],
  [
    'a query that Django decodes in another charset',
    { target: '/query?user=%2BAGE-', contentType: 'text/plain; charset=utf-7' },
    { outcome: 'rejected', rejection: 'ambiguous-key' },
  ],
  ['OPTIONS * is answered', { method: 'OPTIONS', target: '*' }, { outcome: 'answered' }],
  [
    'a client on the deny list is denied, banned or not',
    { ip: '192.0.2.66', entries: [{ ...banOfAddress, partitionKey: '192.0.2.66' }] },
    { outcome: 'denied', by: { list: 'denyList' } },
  ],
  [
    'a banned address is refused, whatever it asks for',
    { entries: [{ ...banOfAddress, partitionKey: '192.0.2.1' }] },
    { outcome: 'banned', ban: { policy: undefined, leftMs: 60_000 } },
  ],
  [
    'a client on the allow list is forwarded, banned or not',
    { target: '/login', ip: '192.0.2.99', entries: [{ ...banOfAddress, partitionKey: '192.0.2.99' }] },
    { outcome: 'forward' },
  ],
  ['a request without a rule is forwarded', {}, { outcome: 'forward' }],
  ['a request without the key of its rule is forwarded', { target: '/query' }, { outcome: 'forward' }],
  [
    'a client that is banned under the rule is refused',
    { target: '/login', entries: [{ ...banOfRule, partitionKey: '192.0.2.1' }] },
    { outcome: 'banned', ban: { policy: { name: 'login' } } },
  ],
  [
    'a request whose client has gone is not counted',
    { target: '/login', context: { isFinished: true } },
    { outcome: 'gone' },
  ],
  [
    'a request whose body does not fit into memory is not counted',
    {
      method: 'POST',
      target: '/tokens',
      options: { readsBodies: true },
      context: { readUnits: () => 'busy' },
    },
    { outcome: 'busy' },
  ],
])('%s, at once, and the limiter is not asked', (_, given, verdict) => {
  const decided = decide(given)
  expect(decided.verdict).toMatchObject(verdict)
  expect(decided.charged).toEqual([])
})

test('the decision of the limiter is the verdict itself', () => {
  const { verdict, charged, context } = decide({ target: '/login' })
  expect(verdict).toBe(allowed)
  expect(charged).toEqual([[{ policy: settings.rules[0]?.policy, partitionKey: '192.0.2.1' }]])
  expect(context.charges).toBe(charged[0])
})

test('the limiter is asked with the limit that was set for a client at run time', () => {
  const entries = [{ kind: 'override', policy: 'login', partitionKey: '192.0.2.1', requests: 9 }] as const
  expect(decide({ target: '/login', entries }).charged).toMatchObject([
    [{ policy: { name: 'login', quota: 9 } }],
  ])
})

test('a client that disconnects while its token is verified is not counted', async () => {
  const { promise, resolve } = Promise.withResolvers<undefined>()
  const { verdict, charged, context } = decide({
    target: '/login',
    options: { tokens: { read: () => promise } },
  })
  Object.assign(context, { isFinished: true })
  resolve(undefined)
  expect(verdict).toBeInstanceOf(Promise)
  expect(await verdict).toEqual({ outcome: 'gone' })
  expect(charged).toEqual([])
})

test('the limiter is asked once the body has arrived, with the units that the body states', async () => {
  const { promise, resolve } = Promise.withResolvers<readonly Charge[]>()
  const { verdict, charged, context } = decide({
    method: 'POST',
    target: '/tokens',
    options: { readsBodies: true },
    context: { readUnits: () => promise },
  })
  expect(charged).toEqual([])
  resolve(context.charges.map((charge) => ({ ...charge, units: 7 })))
  expect(await verdict).toBe(allowed)
  expect(charged).toMatchObject([[{ policy: { name: 'tokens' }, units: 7 }]])
})
