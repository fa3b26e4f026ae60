import { createServer } from 'node:http'
import { flushCompileCache } from 'node:module'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { composeGateway } from '../../../proxy/app/gateway.ts'
import { readSettings } from '../../../proxy/app/reload/settings-source.ts'
import { composeNames } from '../../../proxy/app/upstreams/names.ts'
import { createLog } from '../../../shared/log.ts'
import type { Bounds } from '../../../proxy/config/bounds.ts'
import type { Running } from '../../../shared/shutdown.ts'

// A process that runs any number of gateways, each as `proxy/main.ts` runs one, for `hosted-gateway.ts`. A request to its port carries the
// environment of a new gateway as JSON; the response has the gateway's ports. Each log line has the number of its gateway in `hosted`.
// `TEST_BOUNDS` is JSON that replaces some of the usual bounds. DELETE closes all gateways and cuts their connections off.

let hosted = 0
const open = new Set<Running>()
// Each gateway adds listeners for uncaught exceptions and never removes them, as a gateway usually ends with its process.
process.setMaxListeners(0)

async function start({ TEST_BOUNDS = '{}', ...env }: NodeJS.ProcessEnv): Promise<unknown> {
  const bounds = JSON.parse(TEST_BOUNDS) as Partial<Bounds>
  const { settings, warnings, source } = readSettings(env, process.cwd())
  if (settings.workers > 1) throw new Error('a gateway with workers needs a process of its own')
  const number = ++hosted
  const log = createLog('gateway', settings.logLevel).child({ hosted: number })
  for (const warning of warnings) log.warn(warning)
  const gateway = await composeGateway(
    { ...settings, ...bounds, shutdownDelayMs: 0, shutdownGraceMs: 0 },
    log,
    source,
    composeNames(),
  )
  open.add(gateway)
  return { number, ...(await gateway.listen()) }
}

async function closeAll(): Promise<void> {
  const gateways = [...open]
  open.clear()
  await Promise.all(gateways.map((gateway) => gateway.close()))
}

const control = createServer((request, response) => {
  const answer = async (): Promise<unknown> =>
    request.method === 'DELETE' ? closeAll() : start(JSON.parse(await text(request)) as NodeJS.ProcessEnv)
  answer().then(
    (started) => response.end(JSON.stringify(started)),
    (error: unknown) => response.writeHead(500).end(String(error)),
  )
})

control.listen(0, '127.0.0.1', () => {
  process.stderr.write(`port ${(control.address() as AddressInfo).port}\n`)
  // Now, not at the end: this process is killed.
  flushCompileCache()
})
