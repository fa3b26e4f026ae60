import { Redis } from 'ioredis'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import type { Policy } from '../proxy/policy.ts'
import { freePort } from '../test/support/network/ports.ts'
import { chargeAll, makePolicy, startReplicas } from '../test/support/limiter/limiters.ts'
import { startServer } from './measure/processes.ts'

// What `lease` saves where all requests have one key: commands to Redis, and its CPU and that of the gateways, for a decision.
//
//     npm run bench:leases -- --rate 10000 --gateways 8 --seconds 5 --leases none,auto
//
// The gateways are in one process, and requests come evenly. Where the machine cannot send so many, it says how many it has sent.

const { values } = parseArgs({
  options: {
    rate: { type: 'string', default: '10000' },
    gateways: { type: 'string', default: '8' },
    seconds: { type: 'string', default: '5' },
    leases: { type: 'string', default: 'none,auto' },
  },
})
const rate = Number(values.rate)
const gateways = Number(values.gateways)
const seconds = Number(values.seconds)

async function measure(lease: Policy['lease']): Promise<readonly number[]> {
  const port = await freePort()
  const server = await startServer(
    { program: 'redis-server', args: ['--port', String(port), '--save', '', '--bind', '127.0.0.1'] },
    port,
  )
  const url = `redis://127.0.0.1:${port}`
  const operator = new Redis(url)
  const replicas = await startReplicas(url, gateways)
  const policy = makePolicy('hot', 1_000_000_000, 3_600_000, {
    partition: [{ kind: 'global' }],
    ...(lease !== undefined && { lease }),
  })
  const charges = chargeAll('global', [policy])
  const before = await readUse(operator)
  const ownCpu = process.cpuUsage()
  const pending = new Set<Promise<unknown>>()
  const beganMs = performance.now()
  let decisions = 0
  for (let elapsedMs = 0; elapsedMs < seconds * 1000; elapsedMs = performance.now() - beganMs) {
    for (; decisions < (elapsedMs / 1000) * rate; decisions++) {
      const decision = replicas.limiters[decisions % gateways]?.decide(charges)
      if (!(decision instanceof Promise)) continue
      const done = decision.finally(() => pending.delete(done))
      pending.add(done)
    }
    await sleep(1)
  }
  await Promise.all(pending)
  const perSecond = decisions / ((performance.now() - beganMs) / 1000)
  const { user, system } = process.cpuUsage(ownCpu)
  const after = await readUse(operator)
  replicas.close()
  operator.disconnect()
  await server.stop()
  return [
    perSecond,
    (after.commands - before.commands) / decisions,
    (after.cpuUs - before.cpuUs) / decisions,
    (user + system) / decisions,
  ]
}

async function readUse(operator: Redis): Promise<{ readonly commands: number; readonly cpuUs: number }> {
  const [commands, cpu] = await Promise.all([operator.info('commandstats'), operator.info('cpu')])
  const sum = (text: string, pattern: RegExp): number =>
    [...text.matchAll(pattern)].reduce((total, [, number]) => total + Number(number), 0)
  return {
    commands: sum(commands, /^cmdstat_evalsha?:calls=(\d+)/gm),
    cpuUs: 1e6 * sum(cpu, /^used_cpu_(?:user|sys):([\d.]+)/gm),
  }
}

console.log('| lease | decisions a second | commands each | Redis, µs each | gateways, µs each |')
console.log('| ----- | ------------------ | ------------- | -------------- | ----------------- |')
for (const name of values.leases.split(',')) {
  const lease = name === 'none' ? undefined : name === 'auto' ? name : Number(name)
  const [perSecond = 0, commands = 0, redisUs = 0, ownUs = 0] = await measure(lease)
  const figures = [Math.round(perSecond), commands.toFixed(4), redisUs.toFixed(2), ownUs.toFixed(2)]
  console.log(`| ${[name, ...figures].join(' | ')} |`)
}
