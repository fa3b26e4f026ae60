import { Agent as HttpAgent, get as getHttp, type RequestOptions } from 'node:http'
import { Agent as HttpsAgent, get as getHttps } from 'node:https'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'

// A process of clients that work without haste: each asks, reads the answer, and asks again after a pause, over a
// connection that it keeps. Tells on standard output how long their requests of each round took, until it is killed.

const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '0' },
    clients: { type: 'string', default: '50' },
    tls: { type: 'boolean', default: false },
    'round-ms': { type: 'string', default: '4000' },
  },
})
const pauseMs = 50
const options: RequestOptions & { rejectUnauthorized: boolean } = {
  host: '127.0.0.1',
  port: Number(values.port),
  path: '/',
  rejectUnauthorized: false,
}
const get = values.tls ? getHttps : getHttp
let latenciesMs: number[] = []
let failed = 0

function ask(agent: HttpAgent): Promise<void> {
  const startedMs = performance.now()
  return new Promise((resolve) => {
    const fail = (): void => {
      failed++
      resolve()
    }
    const request = get({ ...options, agent }, (response) => {
      response.resume().on('error', fail)
      response.on('end', () => {
        if (response.statusCode !== 200) return fail()
        latenciesMs.push(performance.now() - startedMs)
        resolve()
      })
    })
    request.on('error', fail)
  })
}

async function work(): Promise<never> {
  const settings = { keepAlive: true, maxSockets: 1 }
  const agent = values.tls ? new HttpsAgent(settings) : new HttpAgent(settings)
  await sleep(Math.random() * pauseMs)
  for (;;) {
    await ask(agent)
    await sleep(pauseMs)
  }
}

for (let client = 0; client < Number(values.clients); client++) void work()

setInterval(() => {
  const sorted = latenciesMs.sort((a, b) => a - b)
  const at = (share: number): number => sorted[Math.floor(sorted.length * share)] ?? Infinity
  process.stdout.write(
    `${JSON.stringify({ requests: sorted.length, failed, p50Ms: at(0.5), p99Ms: at(0.99) })}\n`,
  )
  latenciesMs = []
  failed = 0
}, Number(values['round-ms']))
