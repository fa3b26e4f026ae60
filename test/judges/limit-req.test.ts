import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, get } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { MemoryLimiter } from '../../proxy/limits/store/memory/limiter.ts'
import { delayMsOf } from '../../proxy/limits/waiting/delay-of.ts'
import { makePolicy } from '../support/limiter/charges.ts'
import { installDebianPackages } from '../support/run/packages.ts'
import { freePort } from '../support/network/ports.ts'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'
import { eventually } from '../support/wait/eventually.ts'
import { seededRandom } from '../support/random/seeded-random.ts'
import { testSeed } from '../support/random/seed.ts'

const random = seededRandom(testSeed())

/*
 * A real nginx with limit_req, compared with the gateway's counters fed with the arrivals that nginx has logged. Its log has whole
 * milliseconds: a line does not say when within one the request came, nor whether the clock advanced between its first byte and its
 * decision. So the two may differ about a request within 4 ms of the border; the counters then follow nginx's decision. No result depends
 * on the speed of the machine, because nginx logged the actual arrivals, however late.
 */

const nginx = '/usr/sbin/nginx'
const requestsPerSecond = 50
const burst = 10
const unitMs = 1000 / requestsPerSecond
const clockMs = 4

async function startNginx(): Promise<{ readonly port: number; readonly readLog: () => string[] }> {
  if (!existsSync(nginx)) installDebianPackages(['nginx'])
  if (!existsSync(nginx)) throw new Error(`${nginx} is needed, from Debian's package nginx`)
  const directory = makeTemporaryDirectory()
  const port = await freePort()
  const backend = createServer((_, response) => response.end('ok'))
  await new Promise<void>((resolve) => backend.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void backend.close())
  mkdirSync(join(directory, 'temp'))
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((name) => `${name}_temp_path ${directory}/temp/${name};`)
    .join(' ')
  writeFileSync(
    join(directory, 'nginx.conf'),
    `daemon off; master_process off; pid ${directory}/pid; error_log ${directory}/error.log;
events { worker_connections 2048; }
http {
  ${temporary}
  log_format times '$msec $request_time $limit_req_status $arg_n';
  access_log ${directory}/access.log times;
  limit_req_zone $server_name zone=one:1m rate=${requestsPerSecond}r/s;
  server {
    listen 127.0.0.1:${port};
    server_name one;
    location / { limit_req zone=one burst=${burst}; proxy_pass http://127.0.0.1:${(backend.address() as AddressInfo).port}; }
  }
}
`,
  )
  const child = spawn(nginx, ['-c', join(directory, 'nginx.conf'), '-p', directory], { stdio: 'ignore' })
  onTestFinished(async () => {
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  })
  await eventually('nginx listens', async () => (await ask(port, 'start')) > 0)
  return {
    port,
    readLog: () => readFileSync(join(directory, 'access.log'), 'utf8').split('\n').filter(Boolean),
  }
}

function ask(port: number, n: number | string): Promise<number> {
  return new Promise((resolve) => {
    get({ port, host: '127.0.0.1', path: `/?n=${n}`, agent: false }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode ?? 0))
    }).on('error', () => resolve(0))
  })
}

test(
  'a real nginx admits, delays and refuses 1,000 random arrivals as our counters do',
  { timeout: 120_000 },
  async () => {
    const { port, readLog } = await startNginx()
    const asked: Promise<number>[] = []
    let plannedMs = performance.now()
    for (let n = 0; n < 1_000; n++) {
      asked.push(ask(port, n))
      // Mostly above the rate, with pauses in which the queue empties. On a busy machine late requests arrive together.
      plannedMs += n % 100 === 99 ? 400 : random() * unitMs * 1.4
      await sleep(Math.max(0, plannedMs - performance.now()))
    }
    const statuses = await Promise.all(asked)
    expect(statuses.every((status) => status === 200 || status === 503)).toBe(true)
    const arrivals = await eventually('all are in the log', () => {
      const lines = readLog().map((line) => line.split(' '))
      expect(lines).toHaveLength(1_001)
      return lines.map(([endedAt = '', took = '', status = '', n = '']) => {
        const tookMs = Math.round(Number(took) * 1000)
        return { arrivedMs: Math.round(Number(endedAt) * 1000) - tookMs, tookMs, status, n }
      })
    })
    arrivals.sort((a, b) => a.arrivedMs - b.arrivedMs || Number(a.n) - Number(b.n))

    let nowMs = 0
    const policy = makePolicy('rate', 1, unitMs, {
      algorithm: 'token-bucket',
      over: { delayMs: burst * unitMs + clockMs, waiting: 1000 },
    })
    const limiter = new MemoryLimiter({ maxKeys: 10, seed: 1, now: () => nowMs })
    const counted = { admitted: 0, delayed: 0, refused: 0, atBorder: 0 }
    const wrong: string[] = []
    for (const { arrivedMs, tookMs, status, n } of arrivals) {
      nowMs = arrivedMs
      const decision = limiter.decide([{ policy, partitionKey: 'global' }])
      const [state] = decision.outcome === 'unavailable' ? [] : decision.states
      const reserved = decision.outcome === 'allowed' ? state : undefined
      const delayMs = reserved && delayMsOf(reserved)
      const isRefused = status === 'REJECTED'
      if (isRefused !== (delayMs === undefined)) {
        // Within the tolerance the counters admit a request that nginx refused: its turn is given back.
        const isAtBorder = isRefused && delayMs !== undefined && delayMs > burst * unitMs - clockMs
        if (!isAtBorder) wrong.push(`${n}: nginx ${status}, here ${delayMs ?? 'refused'}`)
        else counted.atBorder += 1
        if (isRefused && reserved?.reservation) limiter.settle(reserved.reservation, 0)
      } else if (isRefused) counted.refused += 1
      else {
        counted[status === 'DELAYED' ? 'delayed' : 'admitted'] += 1
        // A busy machine may delay the request, but it never passes before its turn.
        if (tookMs + clockMs < (delayMs ?? 0))
          wrong.push(`${n}: nginx after ${tookMs} ms, here ${delayMs} ms`)
      }
    }
    expect(wrong).toEqual([])
    expect(counted.delayed).toBeGreaterThan(100)
    expect(counted.refused).toBeGreaterThan(50)
    expect(counted.atBorder).toBeLessThan(counted.refused)
  },
)
