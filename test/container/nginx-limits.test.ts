import { setTimeout as sleep } from 'node:timers/promises'
import { GenericContainer } from 'testcontainers'
import { expect, test } from 'vitest'
import { startGateway } from '../support/gateway/gateway.ts'
import { writeConfigFile } from '../support/run/temporary-directory.ts'
import { eventually } from '../support/wait/eventually.ts'
import { seededRandom } from '../support/random/seeded-random.ts'
import { testSeed } from '../support/random/seed.ts'

const random = seededRandom(testSeed())

/*
 * Checks the statements of docs/recipes/nginx.md about limit_req against nginx itself. nginx is behind a gateway in shadow mode: the
 * gateway says of each request whether it would refuse it, and nginx refuses it or not. test/property/nginx-rates.test.ts covers the exact
 * instants, with a model of nginx.
 */

const nginxImage = process.env['NGINX_IMAGE'] || 'nginx:1'
const clients = 25
const arrivalsEach = 40
/** Timeout on a busy machine. */
const maxMs = 120_000

/** Four a second, and six at once. */
const burst = 5
const drainMs = 250
/** No request is sent this close to the instant at which it would begin to fit, because two programs do not see it at the same time. */
const marginMs = 75

const nginxConfig = `
events {}
http {
  access_log off;
  limit_req_zone $http_x_client zone=all:1m rate=4r/s;
  limit_req_status 429;
  server {
    listen 80;
    location / { limit_req zone=all burst=${burst} nodelay; proxy_pass http://127.0.0.1:81; }
  }
  server { listen 81; location / { return 200; } }
}
`

const table = `
limits:
  - name: all
    match: GET /*
    mode: shadow
    key: header:x-client
    algorithm: token-bucket
    requests: 4
    window: 1s
    burst: ${burst + 1}
`

/** Computes when the next request of a client would fit, so that none is sent close to that instant. */
function createBucket() {
  let level = 0
  let lastMs = 0
  return {
    fitsAtMs: () => lastMs + (level - burst) * drainMs,
    add(nowMs: number) {
      level = Math.max(0, level - (nowMs - lastMs) / drainMs) + 1
      lastMs = nowMs
    },
  }
}

/** Waits for a random time, or hardly at all. */
async function untilNext(fitsAtMs: number): Promise<void> {
  await sleep(random() < 0.5 ? 0 : random() * 3 * drainMs)
  if (Math.abs(performance.now() - fitsAtMs) < marginMs) await sleep(2 * marginMs)
}

/**
 * If a request took longer than the margin, the two programs may have seen it at instants further apart than the margin, so later requests
 * of that client show nothing: another client takes over.
 */
test(
  'the gateway and nginx let the same ones of a thousand requests pass',
  { timeout: 300_000 },
  async () => {
    const container = await new GenericContainer(nginxImage)
      .withCopyContentToContainer([{ content: nginxConfig, target: '/etc/nginx/nginx.conf' }])
      .withExposedPorts(80)
      .start()
    try {
      const gateway = await startGateway({
        UPSTREAM_URL: `http://127.0.0.1:${container.getMappedPort(80)}`,
        CONFIG_FILE: writeConfigFile(table),
        ACCESS_LOG: '1',
      })
      const endMs = performance.now() + maxMs
      const refusedByNginx = new Set<string>()
      const compared = new Set<string>()
      const runClient = async (client: number): Promise<void> => {
        let bucket = createBucket()
        let name = `client-${client}`
        for (let sent = 0, arrivals = 0; arrivals < arrivalsEach && performance.now() < endMs; sent++) {
          await untilNext(bucket.fitsAtMs())
          const path = `/${client}/${sent}`
          const sentAtMs = performance.now()
          const { status } = await gateway.send('GET', path, { headers: { 'x-client': name } })
          if (performance.now() - sentAtMs > marginMs) {
            bucket = createBucket()
            name = `client-${client}-from-${sent}`
            continue
          }
          arrivals += 1
          compared.add(path)
          if (status === 429) refusedByNginx.add(path)
          else bucket.add(performance.now())
        }
      }
      await Promise.all(Array.from({ length: clients }, (_, client) => runClient(client)))
      const read = (): { path: string; wouldBeRefusedBy?: string[] }[] =>
        gateway.process
          .stdout()
          .split('\n')
          .filter((line) => line.includes('"path":"/'))
          .map((line) => JSON.parse(line) as { path: string; wouldBeRefusedBy?: string[] })
      await eventually('all requests are logged', () =>
        expect(read().map(({ path }) => path)).toEqual(expect.arrayContaining([...compared])),
      )
      const refusedHere = read().flatMap(({ path, wouldBeRefusedBy }) =>
        wouldBeRefusedBy && compared.has(path) ? [path] : [],
      )
      expect(refusedHere.toSorted()).toEqual([...refusedByNginx].toSorted())
      // Most of a thousand requests, unless the machine stalls.
      expect(compared.size).toBeGreaterThan(300)
      expect(refusedHere.length).toBeGreaterThan(20)
    } finally {
      await container.stop()
    }
  },
)
