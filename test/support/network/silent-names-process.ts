import { spawn, type ChildProcess } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, get } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as wait } from 'node:timers/promises'
import { readQuestion, writeAnswer } from './dns-records.ts'

/*
 * A gateway in a network namespace of its own, whose name server is 127.0.0.53 and whose hosts file names `hosted.test`. The gateway
 * reaches its backend by address, by that name, and by `answered.test`, for which the name server answers once and then never again. It
 * never answers for `dead.test`. Prints the results of requests as JSON.
 *
 *     node silent-names-process.ts SETTINGS
 *
 * SETTINGS is JSON with the gateway's `env`, and `routes` to add to its table.
 */

type Case = {
  readonly file?: Record<string, unknown>
  readonly env?: Record<string, string>
  readonly ask?: boolean
}

export type SilentNamesReport = Readonly<
  Record<
    string,
    {
      readonly requests: number
      readonly failed: readonly string[]
      readonly p99Ms: number
      readonly maxMs: number
    }
  >
>

/** How long clients send requests. Lookups that wait occupy all threads of a process within two seconds. */
const MEASURE_MS = 7_000
/** How often each route gets a request. The backend closes each connection after its response, so each request opens one. */
const EVERY_MS = 20

async function main({ file = {}, env = {}, ask = false }: Case): Promise<void> {
  let isSilent = false
  const nameServer = createSocket('udp4')
  nameServer.on('message', (query, from) => {
    if (isSilent || readQuestion(query).name !== 'answered.test') return
    nameServer.send(writeAnswer(query, ['127.0.0.2'], 1), from.port, from.address)
  })
  nameServer.bind(53, '127.0.0.53')
  await once(nameServer, 'listening')
  const backend = createServer((_, response) => response.setHeader('connection', 'close').end('ok'))
  backend.listen(0, '0.0.0.0')
  await once(backend, 'listening')
  const { port } = backend.address() as AddressInfo
  const route = (name: string, host: string): Record<string, unknown> => {
    return { name, paths: [`/${name}/*`], upstream: `http://${host}:${port}` }
  }
  const { routes = [], ...rest } = file as { routes?: readonly unknown[] }
  const folder = mkdtempSync(join(tmpdir(), 'sluice-names-'))
  writeFileSync(
    join(folder, 'sluice.yaml'),
    JSON.stringify({
      limits: [],
      routes: [
        route('address', '127.0.0.1'),
        route('hosts', 'hosted.test'),
        route('answered', 'answered.test'),
        route('dead', 'dead.test'),
        ...routes,
      ],
      ...rest,
    }),
  )
  const gateway = spawn(process.execPath, [join(import.meta.dirname, '../../../proxy/main.ts')], {
    cwd: folder,
    env: { ...env, PORT: '0', ADMIN_PORT: '0', PATH: process.env['PATH'] ?? '' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  try {
    const gatewayPort = await portOf(gateway)
    // The name server answers for `answered.test` once, as the gateway starts.
    while ((await send(gatewayPort, '/answered/')).status !== 200) await wait(50)
    isSilent = true
    const report: Record<string, unknown> = {}
    const measured = ['answered', 'address', 'hosts'].map(async (name) => {
      report[name] = undefined
      report[name] = await measure(gatewayPort, `/${name}/`)
    })
    if (ask) measured.push(measure(gatewayPort, '/dead/', 500).then(() => undefined))
    await Promise.all(measured)
    console.log(JSON.stringify(report))
  } finally {
    gateway.kill('SIGKILL')
    rmSync(folder, { recursive: true })
  }
}

async function portOf({ stdout }: ChildProcess): Promise<number> {
  if (!stdout) throw new Error('no output')
  for await (const line of createInterface(stdout)) {
    const { port, msg } = JSON.parse(line) as { port?: number; msg: string }
    if (msg === 'listening' && port !== undefined) {
      stdout.resume()
      return port
    }
  }
  throw new Error('the gateway has not started')
}

async function measure(port: number, path: string, everyMs = EVERY_MS): Promise<SilentNamesReport[string]> {
  const times: number[] = []
  const failed: string[] = []
  const pending: Promise<void>[] = []
  const end = performance.now() + MEASURE_MS
  while (performance.now() < end) {
    pending.push(
      send(port, path).then(({ status, ms }) => {
        times.push(ms)
        if (status !== 200) failed.push(`${status} after ${Math.round(ms)} ms`)
      }),
    )
    await wait(everyMs)
  }
  // Waits only for the requests that are measured.
  if (everyMs === EVERY_MS) await Promise.all(pending)
  times.sort((one, other) => one - other)
  const at = (part: number): number => Math.round(times[Math.floor((times.length - 1) * part)] ?? 0)
  return { requests: times.length, failed, p99Ms: at(0.99), maxMs: at(1) }
}

function send(port: number, path: string): Promise<{ readonly status: number; readonly ms: number }> {
  const begin = performance.now()
  return new Promise((resolve) => {
    const end = (status: number): void => resolve({ status, ms: performance.now() - begin })
    get({ port, path, host: '127.0.0.1' }, (response) => {
      response.resume().once('end', () => end(response.statusCode ?? 0))
    }).once('error', () => end(0))
  })
}

await main(JSON.parse(process.argv[2] ?? '{}') as Case)
process.exit(0)
