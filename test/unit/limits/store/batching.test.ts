import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { Batching } from '../../../../proxy/limits/store/batching.ts'
import type { RemoteCounters } from '../../../../proxy/limits/store/remote-counters.ts'
import type { Charge, Decision } from '../../../../proxy/limits/limiter.ts'
import { chargeAll, makePolicy } from '../../../support/limiter/charges.ts'

const login = makePolicy('login', 5, 60_000)
const wide = makePolicy('wide', 50, 60_000)
const shadow = makePolicy('shadow', 50, 60_000, { mode: 'shadow' })

type Asked = {
  readonly clients: string[]
  readonly isAwaited: () => boolean
  answer(reply: readonly unknown[]): void
  fail(error: Error): void
}

type Harness = {
  readonly decide: (charges: readonly Charge[]) => Promise<Decision>
  readonly giveUp: () => void
  readonly asked: Asked[]
  readonly heard: string[]
}

/** A store that gives the answers that the test chooses, when the test chooses. */
function createHarness(timeoutMs = 1000, changes: Partial<RemoteCounters> = {}): Harness {
  const asked: Asked[] = []
  const heard: string[] = []
  const batches = new Batching({
    counters: {
      batchSize: 4,
      isConnected: () => true,
      hasCountedNothing: (error) => error instanceof TypeError,
      ask: (requests, isAwaited) =>
        new Promise((resolve, reject) => {
          const clients = requests.map((charges) => charges[0]?.partitionKey ?? '')
          asked.push({ clients, isAwaited, answer: resolve, fail: reject })
        }),
      ...changes,
    },
    timeoutMs,
    now: () => performance.now(),
    hooks: {
      answered: () => heard.push('answered'),
      failed: (reason) => heard.push(`failed: ${reason}`),
      counterBroken: (policies, reason) =>
        heard.push(`broken ${policies.map(({ name }) => name).join()}: ${reason}`),
      decideWithout: (_, uncertain) => ({ outcome: 'unavailable', uncertain }),
      refused: (charges, { refusedBy }) =>
        heard.push(`${charges[0]?.partitionKey} refused by ${refusedBy.name}`),
    },
  })
  return { decide: (charges) => batches.decide(charges), giveUp: () => batches.giveUp(), asked, heard }
}

// Time advances only when a test advances it.
beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }))
afterEach(() => void vi.useRealTimers())

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

test('questions of one turn share batches of the allowed size, and the next turn starts new ones', async () => {
  const { decide, asked } = createHarness()
  for (const client of ['a', 'b', 'c']) void decide(chargeAll(client, [login]))
  void decide(chargeAll('d', [login, wide]))
  await nextTurn()
  void decide(chargeAll('e', [login]))
  await nextTurn()
  expect(asked.map(({ clients }) => clients)).toEqual([['a', 'b', 'c'], ['d'], ['e']])
})

test('a request with more charges than a batch may have gets a batch of its own', async () => {
  const { decide, asked } = createHarness(1000, { batchSize: 1 })
  void decide(chargeAll('a', [login, wide]))
  void decide(chargeAll('b', [login, wide]))
  await nextTurn()
  expect(asked.map(({ clients }) => clients)).toEqual([['a'], ['b']])
})

test('collects what arrives while so many questions are unanswered, and asks for it with the next answer', async () => {
  const { decide, asked } = createHarness(1000, { maxUnanswered: 2 })
  for (const client of ['a', 'b', 'c', 'd']) {
    void decide(chargeAll(client, [login]))
    await nextTurn()
  }
  expect(asked.map(({ clients }) => clients)).toEqual([['a'], ['b']])
  asked[1]?.answer([4, 1000])
  await nextTurn()
  await nextTurn()
  expect(asked.map(({ clients }) => clients)).toEqual([['a'], ['b'], ['c', 'd']])
})

test('the next batch is sent even if an unanswered one fails, or its time is over', async () => {
  const { decide, asked } = createHarness(20, { maxUnanswered: 1 })
  void decide(chargeAll('a', [login]))
  await nextTurn()
  const second = decide(chargeAll('b', [login]))
  asked[0]?.fail(new Error('cut off'))
  await nextTurn()
  await nextTurn()
  expect(asked.map(({ clients }) => clients)).toEqual([['a'], ['b']])
  vi.advanceTimersByTime(20)
  expect(await second).toEqual({ outcome: 'unavailable', uncertain: true })
  void decide(chargeAll('c', [login]))
  await nextTurn()
  expect(asked.map(({ clients }) => clients)).toEqual([['a'], ['b'], ['c']])
})

test('a full batch is sent without waiting for an answer', async () => {
  const { decide, asked } = createHarness(1000, { maxUnanswered: 1, batchSize: 2 })
  for (const client of ['a', 'b', 'c', 'd', 'e']) void decide(chargeAll(client, [login]))
  await nextTurn()
  expect(asked.map(({ clients }) => clients)).toEqual([
    ['a', 'b'],
    ['c', 'd'],
  ])
})

test('a batch without waiting requests is not sent, and counts as not counted', async () => {
  const { decide, asked, heard } = createHarness(30, { maxUnanswered: 1 })
  let now = decide(chargeAll('a', [login]))
  await nextTurn()
  const unsent = decide(chargeAll('b', [login]))
  // Both timers are due in the same turn, and fire in the order in which they were set.
  vi.advanceTimersByTime(30)
  expect(await now).toEqual({ outcome: 'unavailable', uncertain: true })
  expect(await unsent).toEqual({ outcome: 'unavailable', uncertain: false })
  expect(asked.map(({ clients }) => clients)).toEqual([['a']])
  expect(heard).toEqual(['failed: no answer in 30 ms', 'failed: no answer in 30 ms'])
  now = decide(chargeAll('c', [login]))
  await nextTurn()
  expect(asked.map(({ clients }) => clients)).toEqual([['a'], ['c']])
  asked[1]?.answer([4, 1000])
  expect(await now).toMatchObject({ outcome: 'allowed' })
})

test('each decision is read from its own part of the reply', async () => {
  const { decide, asked, heard } = createHarness()
  const decisions = [decide(chargeAll('a', [login])), decide(chargeAll('b', [shadow, login, wide]))]
  await nextTurn()
  asked[0]?.answer([4, 1000, -1, 2000, -1, 3000, 7, 4000])
  expect(await Promise.all(decisions)).toEqual([
    { outcome: 'allowed', states: [{ policy: login, exceeded: false, remaining: 4, resetMs: 1000 }] },
    {
      outcome: 'refused',
      refusedBy: login,
      states: [
        { policy: shadow, exceeded: true, remaining: 0, resetMs: 2000 },
        { policy: login, exceeded: true, remaining: 0, resetMs: 3000 },
        { policy: wide, exceeded: false, remaining: 7, resetMs: 4000 },
      ],
    },
  ])
  expect(heard).toEqual(['b refused by login', 'answered'])
})

test('a broken counter fails only its own request', async () => {
  const { decide, asked, heard } = createHarness()
  const decisions = [decide(chargeAll('a', [login, wide])), decide(chargeAll('b', [login]))]
  await nextTurn()
  asked[0]?.answer(['WRONGTYPE of it', 0, 'WRONGTYPE of it', 0, 4, 1000])
  expect(await Promise.all(decisions)).toMatchObject([
    { outcome: 'unavailable', uncertain: false },
    { outcome: 'allowed' },
  ])
  expect(heard).toEqual(['broken login,wide: WRONGTYPE of it', 'answered'])
})

test('any other error inside a reply counts as one of the whole store', async () => {
  const { decide, asked, heard } = createHarness()
  const decision = decide(chargeAll('a', [login]))
  await nextTurn()
  asked[0]?.answer(['OOM command not allowed', 0])
  expect(await decision).toEqual({ outcome: 'unavailable', uncertain: false })
  expect(heard).toEqual(['failed: OOM command not allowed'])
})

test('a batch stops waiting at the deadline, and ignores later replies', async () => {
  const { decide, asked, heard } = createHarness(20)
  const decision = decide(chargeAll('a', [login]))
  await nextTurn()
  vi.advanceTimersByTime(19)
  expect(asked[0]?.isAwaited()).toBe(true)
  vi.advanceTimersByTime(1)
  expect(await decision).toEqual({ outcome: 'unavailable', uncertain: true })
  expect(asked[0]?.isAwaited()).toBe(false)
  asked[0]?.answer([-1, 1000])
  await nextTurn()
  expect(heard).toEqual(['failed: no answer in 20 ms'])
})

test('a failed batch tells whether it may have been counted', async () => {
  const { decide, asked, heard } = createHarness()
  const decisions = [decide(chargeAll('a', [login]))]
  await nextTurn()
  decisions.push(decide(chargeAll('b', [login])))
  await nextTurn()
  asked[0]?.fail(new Error('cut off'))
  asked[1]?.fail(new TypeError('not sent'))
  expect(await Promise.all(decisions)).toEqual([
    { outcome: 'unavailable', uncertain: true },
    { outcome: 'unavailable', uncertain: false },
  ])
  expect(heard).toEqual(['failed: cut off', 'failed: not sent'])
})

test('no batch is sent without a connection', async () => {
  const { decide, asked, heard } = createHarness(1000, { isConnected: () => false })
  expect(await decide(chargeAll('a', [login]))).toEqual({ outcome: 'unavailable', uncertain: false })
  expect(asked).toEqual([])
  expect(heard).toEqual(['failed: not connected'])
})

test('giving up fails all pending and unsent decisions at once, permanently', async () => {
  const { decide, asked, heard, giveUp } = createHarness(20)
  const sent = decide(chargeAll('a', [login]))
  await nextTurn()
  const unsent = decide(chargeAll('b', [login]))
  giveUp()
  expect(await sent).toEqual({ outcome: 'unavailable', uncertain: true })
  expect(await unsent).toEqual({ outcome: 'unavailable', uncertain: false })
  vi.advanceTimersByTime(40)
  expect(asked).toHaveLength(1)
  expect(heard).toEqual([])
  const next = decide(chargeAll('c', [login]))
  await nextTurn()
  asked[1]?.answer([4, 1000])
  expect(await next).toMatchObject({ outcome: 'allowed' })
})

describe('of several servers', () => {
  type Sent = {
    readonly lane: string | undefined
    readonly clients: string[]
    answer(reply: readonly unknown[]): void
  }

  /** Clients are named after their servers, such as `a:1`. Clients without a server are decided by several servers. */
  function createServers(timeoutMs = 1000) {
    const sent: Sent[] = []
    let together = 0
    const batches = new Batching<string>({
      counters: {
        batchSize: 100,
        maxUnanswered: 1,
        lanes: {
          laneOf: ([charge]) => charge?.partitionKey.split(':', 1)[0] || undefined,
          isElsewhere: (error) => String(error).startsWith('MOVED'),
          together: (send) => {
            together += 1
            send()
          },
        },
        isConnected: () => true,
        hasCountedNothing: () => true,
        ask: (requests, _, lane) =>
          new Promise((answer) => {
            sent.push({ lane, clients: requests.map(([charge]) => charge?.partitionKey ?? ''), answer })
          }),
      },
      timeoutMs,
      now: () => performance.now(),
      hooks: {
        answered: () => undefined,
        failed: () => undefined,
        counterBroken: () => undefined,
        decideWithout: (_, uncertain) => ({ outcome: 'unavailable', uncertain }),
        refused: () => undefined,
      },
    })
    const ask = (client: string): Promise<Decision> => batches.decide(chargeAll(client, [login]))
    return { ask, giveUp: () => batches.giveUp(), sent, together: () => together }
  }

  test('each of several servers is asked for its requests together, and none waits for another', async () => {
    const { ask, sent, together } = createServers()
    for (const client of ['a:1', 'b:1', 'a:2', ':1', ':2']) void ask(client)
    await nextTurn()
    expect(sent.map(({ lane, clients }) => [lane, clients])).toEqual([
      ['a', ['a:1', 'a:2']],
      ['b', ['b:1']],
      [undefined, [':1']],
      [undefined, [':2']],
    ])
    expect(together()).toBe(1)
    for (const client of ['a:3', 'b:2', ':3']) void ask(client)
    sent[1]?.answer([4, 1000])
    await nextTurn()
    await nextTurn()
    expect(sent.slice(4).map(({ clients }) => clients)).toEqual([[':3'], ['b:2']])
  })

  test('a request whose counters the server does not have any more is asked by itself', async () => {
    const { ask, sent } = createServers()
    const decisions = [ask('a:1'), ask('a:2'), ask('a:3')]
    await nextTurn()
    sent[0]?.answer([4, 1000, 'MOVED to b', 0, 3, 1000])
    await nextTurn()
    await nextTurn()
    expect(sent.slice(1).map(({ lane, clients }) => [lane, clients])).toEqual([[undefined, ['a:2']]])
    sent[1]?.answer([2, 1000])
    expect(await Promise.all(decisions)).toMatchObject(
      [4, 2, 3].map((remaining) => ({ states: [{ remaining }] })),
    )
  })

  test('a request is asked once more only, and for no longer than its time', async () => {
    const { ask, sent } = createServers(50)
    const [twice, late] = [ask('a:1'), ask('a:2')]
    let isLateOver = false
    void late.then(() => (isLateOver = true))
    await nextTurn()
    vi.advanceTimersByTime(20)
    sent[0]?.answer(['MOVED to b', 0, 'MOVED to b', 0])
    await nextTurn()
    await nextTurn()
    sent[1]?.answer(['MOVED to c', 0])
    expect(await twice).toEqual({ outcome: 'unavailable', uncertain: false })
    vi.advanceTimersByTime(29)
    await nextTurn()
    expect(isLateOver).toBe(false)
    vi.advanceTimersByTime(1)
    expect(await late).toEqual({ outcome: 'unavailable', uncertain: true })
    expect(sent).toHaveLength(3)
  })

  test('giving up decides the requests to all of several servers', async () => {
    const { ask, giveUp, sent } = createServers()
    const sentOnes = [ask('a:1'), ask(':1')]
    await nextTurn()
    const unsent = [ask('a:2'), ask('b:1'), ask(':2')]
    giveUp()
    expect(await Promise.all(sentOnes)).toEqual(Array(2).fill({ outcome: 'unavailable', uncertain: true }))
    expect(await Promise.all(unsent)).toEqual(Array(3).fill({ outcome: 'unavailable', uncertain: false }))
    await nextTurn()
    expect(sent).toHaveLength(2)
  })
})
