import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { createAddressReader } from '../../../../proxy/request/addresses/client-address.ts'
import { TrustedHosts } from '../../../../proxy/request/addresses/trusted-hosts.ts'
import { recordLog } from '../../../support/limiter/recordings.ts'
import { peerAt } from '../../../support/network/peer-at.ts'

type Answer = readonly string[] | Error | Promise<never>

class LookupError extends Error {
  readonly code: string
  constructor(code: string) {
    super(code)
    this.code = code
  }
}
const noSuchHost = new LookupError('ENOTFOUND')
const noServer = new LookupError('EAI_AGAIN')
const never = new Promise<never>(() => undefined)

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** Trusted hosts with their own resolver, which replies with the current content of `answers`. */
function start(answers: Record<string, Answer>) {
  const asked: string[] = []
  const { log, lines } = recordLog()
  const hosts = new TrustedHosts({
    hosts: Object.keys(answers),
    async lookup(host) {
      asked.push(host)
      const answer = await answers[host]
      if (!answer || answer instanceof Error) throw answer ?? noSuchHost
      return answer
    },
    now: () => performance.now(),
    log,
  })
  return { hosts, asked, lines, pass: (ms: number) => vi.advanceTimersByTimeAsync(ms) }
}

function trusted(hosts: TrustedHosts, ...addresses: string[]): string[] {
  return addresses.filter((address) => hosts.has(address))
}

describe('the hosts among the trusted proxies', () => {
  test('the hosts among the trusted proxies are looked up at start, and again each minute', async () => {
    const answers: Record<string, Answer> = { nginx: ['10.0.0.2', '::ffff:10.0.0.3', 'fe80::1%eth0'] }
    const { hosts, asked, pass, lines } = start(answers)
    await hosts.ready(1000)
    expect(trusted(hosts, '10.0.0.2', '10.0.0.3', 'fe80::1', '10.0.0.4')).toEqual([
      '10.0.0.2',
      '10.0.0.3',
      'fe80::1',
    ])
    answers['nginx'] = ['10.0.0.4']
    await pass(59_000)
    expect(asked).toHaveLength(1)
    await pass(6_000)
    expect(asked).toHaveLength(2)
    expect(trusted(hosts, '10.0.0.2', '10.0.0.3', 'fe80::1', '10.0.0.4')).toEqual(['10.0.0.4'])
    expect(lines.map(({ level }) => level)).toEqual([30, 30])
  })

  test('hosts that do not exist are warned of once, trust nobody, and are looked up every five seconds', async () => {
    const answers: Record<string, Answer> = { nginx: noSuchHost, other: ['10.0.0.9'] }
    const { hosts, asked, pass, lines } = start(answers)
    await hosts.ready(1000)
    await pass(20_000)
    expect(asked.filter((host) => host === 'nginx')).toHaveLength(5)
    expect(lines.filter(({ level }) => level === 40)).toMatchObject([{ host: 'nginx', reason: 'ENOTFOUND' }])
    expect(trusted(hosts, '10.0.0.2', '10.0.0.9')).toEqual(['10.0.0.9'])
    answers['nginx'] = ['10.0.0.2']
    await pass(5_000)
    expect(trusted(hosts, '10.0.0.2', '10.0.0.9')).toEqual(['10.0.0.2', '10.0.0.9'])
  })

  test('hosts that no longer exist trust nobody after the next lookup', async () => {
    const answers: Record<string, Answer> = { nginx: ['10.0.0.2'] }
    const { hosts, pass } = start(answers)
    await hosts.ready(1000)
    answers['nginx'] = noSuchHost
    await pass(65_000)
    expect(trusted(hosts, '10.0.0.2')).toEqual([])
  })

  test('the hosts among the trusted proxies keep their addresses for five minutes while their server does not answer, and no longer', async () => {
    const answers: Record<string, Answer> = { nginx: ['10.0.0.2'] }
    const { hosts, pass, lines } = start(answers)
    await hosts.ready(1000)
    answers['nginx'] = noServer
    await pass(290_000)
    expect(trusted(hosts, '10.0.0.2')).toEqual(['10.0.0.2'])
    expect(lines.filter(({ level }) => level === 40)).toHaveLength(1)
    await pass(15_000)
    expect(trusted(hosts, '10.0.0.2')).toEqual([])
  })

  test('hosts whose lookup hangs keep nobody waiting, and are not looked up again meanwhile', async () => {
    const answers: Record<string, Answer> = { slow: never, nginx: ['10.0.0.2'] }
    const { hosts, asked, pass } = start(answers)
    const ready = hosts.ready(1000)
    await pass(1000)
    await ready
    expect(trusted(hosts, '10.0.0.2')).toEqual(['10.0.0.2'])
    await pass(600_000)
    expect(asked.filter((host) => host === 'slow')).toHaveLength(1)
    expect(asked.filter((host) => host === 'nginx').length).toBeGreaterThan(8)
  })

  test('hosts whose lookup hangs later still lose their addresses', async () => {
    const answers: Record<string, Answer> = { nginx: ['10.0.0.2'] }
    const { hosts, pass } = start(answers)
    await hosts.ready(1000)
    answers['nginx'] = never
    await pass(310_000)
    expect(trusted(hosts, '10.0.0.2')).toEqual([])
  })

  test('the hosts among the trusted proxies have no more than 256 addresses each', async () => {
    const many = Array.from({ length: 300 }, (_, i) => `10.0.${i >> 8}.${i & 255}`)
    const { hosts, lines } = start({ nginx: many })
    await hosts.ready(1000)
    expect(trusted(hosts, ...many)).toEqual(many.slice(0, 256))
    expect(lines.filter(({ level }) => level === 40)).toHaveLength(1)
  })

  test('the hosts among the trusted proxies are not asked for any more when the gateway is closed', async () => {
    const { hosts, asked, pass } = start({ nginx: noSuchHost })
    await hosts.ready(1000)
    hosts.close()
    await pass(120_000)
    expect(asked).toHaveLength(1)
  })
})

test('a connection that began before its peer was known is trusted from then on, and no longer than it is', () => {
  const known = new Set<string>()
  const reader = createAddressReader(['10.0.0.0/8'], { hosts: known })
  const peer = peerAt(reader, '::ffff:192.0.2.1')
  expect(reader.readClientAddress(peer, '203.0.113.9').address).toBe('192.0.2.1')
  known.add('192.0.2.1')
  expect(peer.trusted).toBe(true)
  expect(reader.readClientAddress(peer, '203.0.113.9, 192.0.2.1').address).toBe('203.0.113.9')
  known.clear()
  expect(reader.readClientAddress(peer, '203.0.113.9').address).toBe('192.0.2.1')
})
