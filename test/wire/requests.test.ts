import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { DEVICE_SECRET, tableOfEveryKind } from '../support/gateway/every-kind.ts'
import { startGateway, type GatewayProcess } from '../support/gateway/gateway.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { parseExposition } from '../support/metrics/prometheus.ts'
import { waysOfSending, type WayOfSending } from '../support/http/raw-client.ts'
import { seededRandom } from '../support/random/seeded-random.ts'
import { startRecordingBackend, type RecordingBackend } from '../support/http/recording-backend.ts'
import { writeConfigFile } from '../support/run/temporary-directory.ts'
import { runVector, type Outcome } from './run-vector.ts'
import type { Vector } from './vector.ts'
import { vectorsByTheme } from './vectors.ts'
import { testSeed } from '../support/random/seed.ts'

// The attack: bytes that the gateway and the backend read differently. If they disagree about the end of a request, a client can smuggle a
// request past every rule, or into another client's connection; if they disagree about a target or a field, past one rule. So every vector
// states what the backend may see. The backend here reads everything in the worst possible way, and must see exactly that, no matter in
// which pieces the bytes arrive. At random, half of the vectors meet one plain rule, and the others also rules of every kind, which read
// bodies before the gateway forwards them.

const seed = testSeed()
const ways = Object.keys(waysOfSending) as WayOfSending[]
const drawn = seededRandom(seed)
const drawnWays = new Map<Vector, readonly WayOfSending[]>()
/** The number of concurrent connections: enough to keep the gateway busy while some wait for it to close. */
const parallel = 96

let backend: RecordingBackend
let gateway: GatewayProcess
let everyKind: HostedGateway
const outcomes = new Map<string, Promise<Outcome>>()

beforeAll(async () => {
  console.log(`random pieces with TEST_SEED=${seed}`)
  backend = await startRecordingBackend()
  // On a busy machine, a head of 100 KB takes longer byte by byte than the default allows.
  const settings = { UPSTREAM_URL: backend.url, HEADERS_TIMEOUT: '1m', BODY_TIMEOUT: '1m' }
  gateway = await startGateway({ ...settings, CONFIG_FILE: 'test/wire/counted.yaml' })
  const everything = "{ name: everything, match: '* /*', requests: 1000000000, window: 1d }"
  everyKind = await startHosted({
    ...settings,
    CONFIG_FILE: writeConfigFile(tableOfEveryKind([everything])),
    DEVICE_SECRET,
  })
  const random = seededRandom(seed)
  const runs = Object.values(vectorsByTheme).flatMap((vectors) =>
    vectors.flatMap((vector) => {
      // Under rules that count by cookies, `Connection` does not remove them: see test/wire/named-by-connection.test.ts.
      const isPlainOnly = vector.name === 'a cookie that is named'
      return waysOf(vector).map((way) => ({
        vector,
        way,
        port: isPlainOnly || random() < 0.5 ? gateway.port : everyKind.port,
      }))
    }),
  )
  const lanes = Array.from({ length: parallel }, () => Promise.resolve<unknown>(undefined))
  runs.forEach(({ vector, way, port }, i) => {
    const lane = i % parallel
    const outcome = (lanes[lane] ?? Promise.resolve()).then(() =>
      runVector(port, backend, vector, way, random),
    )
    outcomes.set(keyOf(vector, way), outcome)
    lanes[lane] = outcome.catch(() => undefined)
  })
  await Promise.all(lanes)
})

afterAll(() => backend.close())

describe.each(Object.entries(vectorsByTheme))('%s', (theme, vectors) => {
  test.each(vectors.map((vector) => [vector.name, vector] as const))('%s', async (_, vector) => {
    for (const way of waysOf(vector)) {
      const outcome = await outcomes.get(keyOf(vector, way))
      const about = `${theme}, ${way}: ${vector.why} (${vector.rfc})`
      const { statuses, backend: seen, unfinished } = vector.verdict
      expect(outcome, about).toMatchObject({
        statuses,
        backend: seen,
        interim: vector.interim ?? [],
        rest: '',
        sees: vector.sees ?? {},
        says: expect.stringContaining(vector.says ?? '') as string,
      })
      for (const begun of outcome?.unfinished ?? []) expect(begun, about).toBe(unfinished)
    }
  })
})

describe('all vectors together', () => {
  test('there are at least 300, each with a name of its own', () => {
    const names = Object.entries(vectorsByTheme).flatMap(([theme, vectors]) =>
      vectors.map(({ name }) => `${theme}: ${name}`),
    )
    expect(names.length).toBeGreaterThanOrEqual(300)
    expect(names.filter((name, i) => names.indexOf(name) !== i)).toEqual([])
  })

  test('nothing that arrived at the backend can be read in two ways', () => {
    expect(backend.faults()).toEqual([])
  })

  test('the backend has seen no more requests than were decided on', async () => {
    let decided = 0
    for (const { adminPort } of [gateway, everyKind]) {
      const reply = await fetch(`http://127.0.0.1:${adminPort}/metrics`)
      const metrics = parseExposition(await reply.text())
      const allowed = metrics.value('sluice_decisions_total', { policy: 'everything', outcome: 'allowed' })
      expect(allowed).toBeGreaterThan(500)
      decided += allowed
      expect(metrics.value('sluice_uncaught_errors_total', { place: 'process' })).toBe(0)
      expect(metrics.value('sluice_uncaught_errors_total', { place: 'request' })).toBe(0)
    }
    expect(backend.requests.length).toBeGreaterThan(1_000)
    expect(backend.requests.length).toBeLessThanOrEqual(decided)
  })

  test('the process still runs and serves', async () => {
    expect(gateway.process.child.exitCode).toBeNull()
    expect((await gateway.send('GET', '/alive')).status).toBe(200)
  })
})

/** All ways in the long tests. Otherwise whole, byte by byte, and one of the other two ways, drawn at random. */
function waysOf(vector: Vector): readonly WayOfSending[] {
  if (process.env['PROPERTY_RUNS'] === 'all') return ways
  const cutsSomewhere = drawn() < 0.5 ? 'line by line' : 'in random pieces'
  const chosen = drawnWays.get(vector) ?? (['whole', 'byte by byte', cutsSomewhere] as const)
  drawnWays.set(vector, chosen)
  return chosen
}

function keyOf({ name, rfc }: Vector, way: WayOfSending): string {
  return `${rfc}: ${name}: ${way}`
}
