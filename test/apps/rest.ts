import { request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { readFileSync } from 'node:fs'
import { expect } from 'vitest'
import { authorityFile } from '../support/network/certificates.ts'
import { send, type GatewayProcess } from '../support/gateway/gateway.ts'
import { parseExposition, type Exposition } from '../support/metrics/prometheus.ts'
import { untilMatches } from '../support/wait/until-matches.ts'

/** The reports that an application causes at a gateway; by default there are none. */
export type Expected = {
  /** Texts of warnings and errors. */
  readonly messages?: readonly string[]
  /** Kinds of `sluice_upstream_errors_total` that may be above 0. */
  readonly upstreamErrors?: readonly string[]
}

/** More than the maximum of concurrent requests of the applications' clients, so that every connection of the pool is used. */
const PROBES = 64
/** Maximum number of characters of the log to show on failure. */
const MAX_LOG_LENGTH = 10_000

/**
 * Fails unless the gateway is at rest again: no connection and no tunnel is left, every pooled connection to the backend answers, the
 * gateway is ready, has reported nothing unexpected, and stops when told to.
 */
export async function expectAtRest(
  gateway: GatewayProcess,
  options: { readonly tls: boolean; readonly probe: string; readonly expected: Expected },
): Promise<void> {
  const readMetrics = async (): Promise<string> => (await send(gateway.adminPort, 'GET', '/metrics')).body

  await untilMatches(readMetrics, /^sluice_connections 0$/m)
  await untilMatches(readMetrics, /^sluice_upgrades 0$/m)

  const statuses = await Promise.all(
    Array.from({ length: PROBES }, () => probe(gateway.port, options.tls, options.probe)),
  )
  expect(statuses, gateway.process.output().slice(-MAX_LOG_LENGTH)).toEqual(statuses.map(() => 200))

  const ready = await send(gateway.adminPort, 'GET', '/readyz')
  expect(ready.status).toBe(200)
  expect(JSON.parse(ready.body)).toMatchObject({ status: 'ready', upstream: 'available' })

  const metrics = parseExposition(await readMetrics())
  expect(above0(metrics, 'sluice_uncaught_errors_total', 'place')).toEqual([])
  const allowed = options.expected.upstreamErrors ?? []
  expect(
    above0(metrics, 'sluice_upstream_errors_total', 'kind').filter((kind) => !allowed.includes(kind)),
  ).toEqual([])

  expect(await gateway.process.stop()).toBe(0)
  expect(unexpectedLines(gateway.process.output(), options.expected.messages ?? [])).toEqual([])
}

function above0({ samples }: Exposition, name: string, label: string): string[] {
  return samples
    .filter((sample) => sample.name === name && sample.value > 0)
    .map(({ labels }) => labels[label] ?? '')
}

/** Lines that are not JSON, and warnings and errors with unexpected texts. */
function unexpectedLines(output: string, expected: readonly string[]): string[] {
  return output
    .split('\n')
    .filter((line) => line !== '')
    .filter((line) => {
      try {
        const { level, msg } = JSON.parse(line) as { level: string; msg: string }
        return !['debug', 'info'].includes(level) && !expected.includes(msg)
      } catch {
        return true
      }
    })
}

function probe(port: number, tls: boolean, path: string): Promise<number | string> {
  return new Promise((resolve) => {
    const options = { host: '127.0.0.1', port, path, agent: false, timeout: 20_000 }
    const request = tls ? httpsRequest({ ...options, ca: readFileSync(authorityFile) }) : httpRequest(options)
    request.on('response', (response) => {
      response.resume()
      response.on('end', () => resolve(response.statusCode ?? 0))
    })
    request.on('timeout', () => request.destroy(new Error('no answer')))
    request.on('error', (error) => resolve(error.message))
    request.end()
  })
}
