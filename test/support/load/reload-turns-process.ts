import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { composeGateway } from '../../../proxy/app/gateway.ts'
import { readSettings } from '../../../proxy/app/reload/settings-source.ts'
import { composeNames } from '../../../proxy/app/upstreams/names.ts'
import { createLog } from '../../../shared/log.ts'
import { setGatewayFlags } from '../../../shared/v8-gc.ts'
import { gatewayDefaults, send } from '../gateway/gateway.ts'
import { askOperator } from '../gateway/operator.ts'

// Measures for how long a reload of ten thousand rules blocks the event loop of this process, which is a gateway. Prints the figures as
// JSON.

setGatewayFlags()

const [folder = '', maxMs = ''] = process.argv.slice(2)
const RULES = 10_000
/** Several, because V8 marks the whole heap during some reloads. */
const MAX_RELOADS = 8
const file = join(folder, 'sluice.yaml')

/** Compared with the table before, all rules of a table have different quotas, and a tenth of them have different names. */
function writeTable(version: number): void {
  const rules = Array.from({ length: RULES }, (_, i) => {
    const name = i % 10 === 0 ? `r${i}-${version}` : `r${i}`
    return `- {name: ${name}, match: GET /p${i}/:id, key: path:id, requests: ${100 + version}, window: 1h}\n`
  })
  writeFileSync(file, `limits:\n${rules.join('')}`)
}

/** @returns CPU milliseconds of this thread in the longest turn of the event loop, and in all of them */
async function longestTurn(work: () => Promise<void>): Promise<{ longestMs: number; allMs: number }> {
  const readMs = (): number => {
    const { user, system } = process.threadCpuUsage()
    return (user + system) / 1000
  }
  const progress = { isDone: false }
  const begunMs = readMs()
  let beforeMs = begunMs
  let longestMs = 0
  const done = work().finally(() => (progress.isDone = true))
  while (!progress.isDone) {
    await turn()
    const nowMs = readMs()
    longestMs = Math.max(longestMs, nowMs - beforeMs)
    beforeMs = nowMs
  }
  await done
  return { longestMs, allMs: beforeMs - begunMs }
}

writeTable(0)
const env = { ...gatewayDefaults, CONFIG_FILE: file, UPSTREAM_URL: 'http://127.0.0.1:9' }
const { settings, source } = readSettings(env, process.cwd())
const gateway = await composeGateway(
  { ...settings, shutdownDelayMs: 0, shutdownGraceMs: 0 },
  createLog('gateway', 'fatal'),
  source,
  composeNames(),
)
const ports = await gateway.listen()
if (!ports) throw new Error('the gateway does not listen')

const reloads: { readonly longestMs: number; readonly allMs: number }[] = []
const quotas: string[] = []
// A turn that is long by itself is long in each reload.
while (reloads.length < MAX_RELOADS && !reloads.some(({ longestMs }) => longestMs < Number(maxMs))) {
  const version = reloads.length + 1
  writeTable(version)
  reloads.push(
    await longestTurn(async () => {
      const { status } = await askOperator(ports, 'POST', '/api/reload', {})
      if (status !== 200) throw new Error(`the reload is answered ${status}`)
    }),
  )
  const { headers } = await send(ports.port, 'GET', '/p1/x')
  quotas.push(String(headers['ratelimit-policy']))
}
await gateway.close()
process.stdout.write(`${JSON.stringify({ reloads, quotas })}\n`)
