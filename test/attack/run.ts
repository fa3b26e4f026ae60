import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { tlsSettings } from '../support/certificates.ts'
import { readFileLimit, readResidentMib, startGateway, startWorker, type Worker } from './processes.ts'

// 50 clients work while 2,000 connections send a byte a second of their heads and 2,000 of their bodies:
// `npm run test:attack`. Their 99th percentile may at most double, and when the attack is over the gateway's memory has
// to return to where it was; takes three minutes at most. With `--https` over HTTPS, which does not hold: docs/operations.md
// says what to expect.

const connections = 4_000
const clients = 50
const roundMs = 4_000
/** Of the clients, the median counts: some other program's burst of work is no slowness of the gateway. */
const rounds = 5
/** Rounds until the code is compiled and the memory is what it is going to be. */
const warmUpRounds = 3
/** All attackers are connected by then. The rounds that follow see them thrown out, and return. */
const gatherMs = 16_000
const recoveryMs = 90_000
const mostTimes = 2
/** Percentiles below this are the machine's noise. */
const leastMs = 5
/** What the C library keeps of freed memory, about 30 MiB. The attack takes more than 100. */
const mostGrowthMib = 50

type Round = { readonly requests: number; readonly failed: number; readonly p99Ms: number }

const filesNeeded = connections + 1_000
if (readFileLimit() < filesNeeded) {
  console.log(
    `Nothing was attacked: ${filesNeeded} open files are needed, ${readFileLimit()} are allowed. Try \`ulimit -n ${filesNeeded}\`.`,
  )
  process.exit(1)
}

const backend = createServer((request, response) => {
  request.resume().on('end', () => response.end('ok'))
})
backend.listen(0, '127.0.0.1')
await once(backend, 'listening')
const failures: string[] = []
await attack(process.argv.includes('--https'))
for (const failure of failures) console.log(`Failed: ${failure}`)
process.exit(failures.length === 0 ? 0 : 1)

async function attack(tls: boolean): Promise<void> {
  const name = tls ? 'HTTPS' : 'HTTP'
  const gateway = startGateway({
    HOST: '127.0.0.1',
    PORT: '0',
    ADMIN_PORT: '0',
    CONFIG_FILE: 'test/support/defaults.yaml',
    UPSTREAM_URL: `http://127.0.0.1:${(backend.address() as AddressInfo).port}`,
    ...(tls && tlsSettings()),
  })
  const { port } = JSON.parse(await gateway.nextLine()) as { port: number }
  const to = ['--port', String(port), ...(tls ? ['--tls'] : [])]
  const normal = startWorker('test/attack/normal-clients.ts', [
    ...to,
    '--clients',
    String(clients),
    '--round-ms',
    String(roundMs),
  ])

  for (let round = 0; round < warmUpRounds; round++) await nextRound(normal)
  const before = await measure(normal)
  const restMib = readResidentMib(gateway.pid)

  const attackers = startWorker('test/attack/slow-attackers.ts', [
    ...to,
    '--connections',
    String(connections),
  ])
  await sleep(gatherMs)
  const { head, body } = JSON.parse(await attackers.nextLine()) as { head: number; body: number }
  const within = await measure(normal)
  const attackedMib = readResidentMib(gateway.pid)
  const { opened } = JSON.parse(await attackers.nextLine()) as { opened: number }
  attackers.stop()

  const overMs = performance.now()
  let leftMib = readResidentMib(gateway.pid)
  while (leftMib > restMib + mostGrowthMib && performance.now() - overMs < recoveryMs) {
    await nextRound(normal)
    leftMib = readResidentMib(gateway.pid)
  }
  const recoverySeconds = Math.round((performance.now() - overMs) / 1000)
  normal.stop()
  gateway.stop()

  console.log(`${name}: ${head} slow heads and ${body} slow bodies at a time, ${opened} connections in all`)
  console.log(
    `  99th percentile of ${clients} clients: ${before.p99Ms.toFixed(1)} ms → ${within.p99Ms.toFixed(1)} ms`,
  )
  console.log(
    `  memory: ${restMib.toFixed(0)} MiB → ${attackedMib.toFixed(0)} MiB → ${leftMib.toFixed(0)} MiB after ${recoverySeconds} s`,
  )
  // Of the bodies those are refused at once for which there is no place in the queue for the backend.
  check(name, head > 1_800 && body > 1_000, 'the attackers did not get their connections')
  check(name, before.failed + within.failed === 0, `${within.failed} requests of the clients failed`)
  check(name, within.p99Ms <= mostTimes * Math.max(before.p99Ms, leastMs), 'the clients became too slow')
  check(name, leftMib <= restMib + mostGrowthMib, 'the memory did not come back')
}

async function nextRound(normal: Worker): Promise<Round> {
  return JSON.parse(await normal.nextLine()) as Round
}

/** The median round. */
async function measure(normal: Worker): Promise<{ readonly p99Ms: number; readonly failed: number }> {
  const measured: Round[] = []
  while (measured.length < rounds) measured.push(await nextRound(normal))
  const percentiles = measured.map(({ p99Ms }) => p99Ms).sort((a, b) => a - b)
  return {
    p99Ms: percentiles[Math.floor(rounds / 2)] ?? Infinity,
    failed: measured.reduce((sum, { failed }) => sum + failed, 0),
  }
}

function check(name: string, holds: boolean, problem: string): void {
  if (!holds) failures.push(`${name}: ${problem}`)
}
