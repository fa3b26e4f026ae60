import { median, medianRatio, samplesOf, type Results, type Sample } from './results.ts'
import { noProxy } from '../run.ts'

/** A requirement on the figures of a run. */
export type Bound = {
  readonly text: string
  /** The maximum of the figure. */
  readonly most: number
  /** NaN if the run has not measured it. */
  readonly read: (results: Results) => number
}

type Place = readonly [scenario: string, subject: string]

const cpuUs = ({ cpuUs }: Sample): number => cpuUs
const redisUs = ({ redisUs }: Sample): number => redisUs

function ratio(text: string, most: number, dividend: Place, divisor: Place, figure = cpuUs): Bound {
  const read = ({ cpu }: Results): number =>
    medianRatio(samplesOf(cpu, ...dividend), samplesOf(cpu, ...divisor), figure)
  return { text, most, read }
}

const pass: Place = ['pass', 'sluice']
const nodeStacks = ['http-proxy', 'fastify', 'express']

/** Maximum costs of the gateway, each as a ratio of two values measured in the same run. */
export const bounds: readonly Bound[] = [
  ratio('`pass`, CPU: of `http-proxy`', 0.4, pass, ['pass', 'http-proxy']),
  ratio('`pass`, CPU: of fastify', 0.45, pass, ['pass', 'fastify']),
  ratio('`pass`, CPU: of nginx', 2.5, pass, ['pass', 'nginx']),
  ratio('`pass`, CPU: of HAProxy', 2.5, pass, ['pass', 'haproxy']),
  ratio('`limited`, CPU: of fastify', 0.55, ['limited', 'sluice'], ['limited', 'fastify']),
  ratio('`limited`, CPU: of express', 0.35, ['limited', 'sluice'], ['limited', 'express']),
  ratio('`limited`, CPU: of `pass`', 1.3, ['limited', 'sluice'], pass),
  ratio(
    "`limited`, Redis's CPU: of that under fastify",
    0.5,
    ['limited', 'sluice'],
    ['limited', 'fastify'],
    redisUs,
  ),
  ratio('`limited-many`, CPU: of `pass`', 1.4, ['limited-many', 'sluice'], pass),
  ratio('`embedded`, CPU: of `pass`', 1.1, ['embedded', 'sluice'], pass),
  ratio(
    '`refused`, CPU: of the bare `node:http` server',
    1.3,
    ['refused', 'sluice'],
    ['refused', 'bare node:http'],
  ),
  ratio('10,000 rules, CPU: of 10', 1.05, ['rules', 'sluice, 10000 rules'], ['rules', 'sluice, 10 rules']),
  ratio('2 workers, CPU: of 1', 1.1, ['workers', 'sluice, 2 workers'], ['workers', 'sluice, 1 worker']),
  ratio('`body`, CPU: of `undici`', 0.7, ['body', 'sluice'], ['body', 'undici']),
  ratio('`body`, CPU: of nginx', 2.2, ['body', 'sluice'], ['body', 'nginx']),
  ratio('`tls`, CPU: of nginx', 1.5, ['tls', 'sluice'], ['tls', 'nginx']),
  ratio('`http2`, CPU: of nginx', 1.5, ['http2', 'sluice'], ['http2', 'nginx']),
  { text: 'p99 at the fixed rate: of the best Node stack', most: 1, read: p99OfBestNodeStack },
  { text: 'p50 added to no proxy: of what nginx adds', most: 1.5, read: addedOfNginx },
  { text: 'resident memory at rest, a process, MB', most: 90, read: restMegabytes },
  { text: 'each idle connection, KB', most: 30, read: kilobytesPerConnection },
]

function p99OfBestNodeStack({ latency }: Results): number {
  const p99Of = (subject: string): number =>
    median(samplesOf(latency, 'latency', subject).map(({ p99Us }) => p99Us))
  return p99Of('sluice') / Math.min(...nodeStacks.map(p99Of))
}

/** Compares round by round, which cancels out the latency that the machine adds in each round. */
function addedOfNginx({ latency }: Results): number {
  const without = samplesOf(latency, 'latency', noProxy)
  const added = (subject: string): number[] =>
    samplesOf(latency, 'latency', subject).map(({ p50Us }, round) => p50Us - (without[round]?.p50Us ?? NaN))
  return median(added('sluice')) / median(added('nginx'))
}

function restMegabytes({ memory }: Results): number {
  return median(samplesOf(memory, 'memory', 'sluice').map(({ restBytes }) => restBytes)) / 1e6
}

function kilobytesPerConnection({ memory }: Results): number {
  const samples = samplesOf(memory, 'memory', 'sluice')
  return median(samples.map(({ bytesPerConnection }) => bytesPerConnection)) / 1e3
}
