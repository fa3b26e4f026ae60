import { setTimeout as sleep } from 'node:timers/promises'
import { readProcessorSeconds, readResidentMib, startWorker } from './processes.ts'
import { startProxy, type ProxyName } from './proxies.ts'
import { summarize, type Round, type Service } from './rounds.ts'
import type { AttackReport, Scenario } from './scenarios.ts'

/** The effects of an attack on a proxy and its other clients. */
export type Outcome = {
  readonly scenario: Scenario
  readonly proxy: ProxyName
  readonly before: Service
  /** While the attackers gather, and during the attack. The percentile covers only the attack. */
  readonly within: Service
  /** The share of one processor during the attack, from 0 to 1. */
  readonly processorShare: number
  readonly restMib: number
  readonly maxMib: number
  readonly afterMib: number
  /** The time after the attack at which `afterMib` was measured. */
  readonly afterSeconds: number
  /** The attackers' last report. */
  readonly attackers: AttackReport
  readonly underWay: boolean
}

/** Seconds until the code is compiled and the memory is stable. */
const warmUpSeconds = 4
const maxBeforeSeconds = 10
/** The time within which all attackers have connected. */
const gatherSeconds = 30
const sampleMs = 200
/** Covers the freed memory that the C library keeps, about 30 MiB, and a heap that V8 has grown. */
export const maxGrowthMib = 50

export async function measure(
  scenario: Scenario,
  proxyName: ProxyName,
  backendPort: number,
  { attack: seconds, recovery: recoverySeconds }: { readonly attack: number; readonly recovery: number },
): Promise<Outcome> {
  const { tls, path, perSecond } = scenario
  const proxy = await startProxy(proxyName, { backendPort, tls })
  const port = String((scenario.listener === 'admin' ? proxy.adminPort : proxy.port) ?? 0)
  const normal = startWorker('test/attack/normal-clients.ts', [
    ...['--port', port, '--path', path, '--per-second', String(perSecond)],
    ...(tls ? ['--tls'] : []),
  ])
  await normal.takeLines(warmUpSeconds)
  const before = await takeRounds(Math.min(seconds, maxBeforeSeconds))
  const restMib = readResidentMib(proxy.pid)
  let maxMib = restMib
  const sampling = setInterval(() => {
    maxMib = Math.max(maxMib, readResidentMib(proxy.pid))
  }, sampleMs)

  const attackersProcess = startWorker(`test/attack/${scenario.script}`, [
    '--port',
    port,
    ...scenario.args(proxy.most),
  ])
  let attackers: AttackReport = {}
  attackersProcess.onLine((line) => (attackers = JSON.parse(line) as AttackReport))
  const gathering: Round[] = []
  while (!scenario.underWay(attackers, proxy.most) && gathering.length < gatherSeconds)
    gathering.push(...(await takeRounds(1)))
  const underWay = scenario.underWay(attackers, proxy.most)
  const [begunMs, begunSeconds] = [performance.now(), readProcessorSeconds(proxy.pid)]
  const during = await takeRounds(seconds)
  const processorShare =
    (readProcessorSeconds(proxy.pid) - begunSeconds) / ((performance.now() - begunMs) / 1_000)
  const lastReport = attackers
  attackersProcess.stop()
  clearInterval(sampling)

  const overMs = performance.now()
  const secondsSince = (): number => (performance.now() - overMs) / 1_000
  do await sleep(1_000)
  while (readResidentMib(proxy.pid) > restMib + maxGrowthMib && secondsSince() < recoverySeconds)
  const afterMib = readResidentMib(proxy.pid)
  normal.stop()
  proxy.stop()

  return {
    scenario,
    proxy: proxyName,
    before: summarize(before),
    within: { ...summarize([...gathering, ...during]), p99Ms: summarize(during).p99Ms },
    processorShare,
    restMib,
    maxMib,
    afterMib,
    afterSeconds: Math.round(secondsSince()),
    attackers: lastReport,
    underWay,
  }

  async function takeRounds(count: number): Promise<Round[]> {
    return (await normal.takeLines(count)).map((line) => JSON.parse(line) as Round)
  }
}
