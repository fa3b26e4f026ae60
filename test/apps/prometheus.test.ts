import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { send, startGateway } from '../support/gateway/gateway.ts'
import { parseExposition } from '../support/metrics/prometheus.ts'
import { makeTemporaryDirectory, writeConfigFile } from '../support/run/temporary-directory.ts'
import { eventually } from '../support/wait/eventually.ts'
import { startServer } from './server.ts'

// Prometheus writes its samples to another Prometheus, through a gateway that refuses most of its requests. As docs/backends.md says, it
// drops samples after a 429, unless it is configured to retry, and none after a 503.

const cases: readonly [string, string, string, boolean][] = [
  ['with 429 are dropped', '', '', true],
  ['with 503 are sent again', ', refusal: { status: 503 }', '', false],
  ['with 429 are sent again with retry_on_http_429', '', 'retry_on_http_429: true', false],
]

test.each(cases)(
  'samples that are refused %s',
  async (_, refusal, queue, isLossy) => {
    const receiver = await startPrometheus('', ['--web.enable-remote-write-receiver'])
    const gateway = await startGateway({
      UPSTREAM_URL: `http://127.0.0.1:${receiver}`,
      CONFIG_FILE: writeConfigFile(
        `limits: [{ name: remote-write, match: POST /api/v1/write, requests: 2, window: 3s${refusal} }]`,
      ),
    })
    const sender = await startPrometheus(
      `remote_write:
  - url: http://127.0.0.1:${gateway.port}/api/v1/write
    queue_config: { max_shards: 1, max_samples_per_send: 100, batch_send_deadline: 200ms, ${queue} }
`,
    )
    const read = async (): Promise<Record<'sent' | 'retried' | 'failed', number>> => {
      const { samples } = parseExposition((await send(sender, 'GET', '/metrics')).body)
      const sumOf = (name: string): number =>
        samples.reduce(
          (sum, sample) => sum + (sample.name === `prometheus_remote_storage_${name}` ? sample.value : 0),
          0,
        )
      return {
        sent: sumOf('samples_total'),
        retried: sumOf('samples_retried_total'),
        failed: sumOf('samples_failed_total'),
      }
    }
    await eventually(
      'samples are refused, and others arrive',
      async () => {
        const { sent, retried, failed } = await read()
        expect(sent).toBeGreaterThan(0)
        expect(isLossy ? failed : retried).toBeGreaterThan(100)
      },
      { endMs: 60_000 },
    )
    const { retried, failed } = await read()
    expect(isLossy ? retried : failed).toBe(0)
  },
  120_000,
)

/** Starts a Prometheus. It scrapes itself if it has an address to write to. */
function startPrometheus(remoteWrite: string, options: readonly string[] = []): Promise<number> {
  const directory = makeTemporaryDirectory()
  const config = join(directory, 'prometheus.yml')
  const args = (port: number): string[] => {
    const job = `scrape_configs: [{ job_name: itself, static_configs: [{ targets: ['127.0.0.1:${port}'] }] }]\n`
    writeFileSync(
      config,
      `global: { scrape_interval: 1s, scrape_timeout: 1s }\n${remoteWrite}${remoteWrite === '' ? '' : job}`,
    )
    return [
      ...[`--config.file=${config}`, `--storage.tsdb.path=${join(directory, 'data')}`],
      ...[`--web.listen-address=127.0.0.1:${port}`, ...options],
    ]
  }
  return startServer('/usr/bin/prometheus', args, { ready: /Server is ready to receive web requests/ })
}
