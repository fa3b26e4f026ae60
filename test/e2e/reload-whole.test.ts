import { writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { send, startGateway } from '../support/gateway/gateway.ts'
import { askOperator } from '../support/gateway/operator.ts'
import { runs } from '../support/random/runs.ts'
import { writeConfigFile } from '../support/run/temporary-directory.ts'

// A large table is read, compared and compiled a few milliseconds at a time, while the gateway serves requests. Each request is decided by
// one table as a whole, never by a mixture of the old and the new one.

/** More rules than the gateway compiles without a break. */
const RULES = runs(5000)

/** A table whose first and last rules match the same request, and whose names all contain its number. */
function table(turn: number): string {
  const rule = (name: string, path: string): string =>
    `  - {name: ${name}-${turn}, match: GET ${path}, requests: 1000000, window: 1h}\n`
  const between = Array.from({ length: RULES }, (_, at) => rule(`r${at}`, `/r${at}/:id`))
  return `limits:\n${[rule('first', '/asked'), ...between, rule('last', '/asked')].join('')}`
}

/** The tables whose rules a response names. */
function tablesOf(policies: unknown): string[] {
  return Array.from(String(policies).matchAll(/"(\w+-\d)"/g), ([, name = '']) => name)
}

test.each([{ workers: '1' }, { workers: '2' }])(
  'each request is decided by one table, before or after a reload, WORKERS=$workers',
  async ({ workers }) => {
    const backend = await startBackend()
    const file = writeConfigFile(table(0))
    const gateway = await startGateway({ UPSTREAM_URL: backend.url, CONFIG_FILE: file, WORKERS: workers })
    const seen = new Map<string, number>()
    let isOver = false
    const ask = async (): Promise<void> => {
      while (!isOver) {
        const { status, headers } = await send(gateway.port, 'GET', '/asked')
        const names = `${status} ${tablesOf(headers['ratelimit-policy']).join()}`
        seen.set(names, (seen.get(names) ?? 0) + 1)
      }
    }
    const asking = [ask(), ask(), ask(), ask()]
    for (const turn of [1, 2]) {
      writeFileSync(file, table(turn))
      expect((await askOperator(gateway, 'POST', '/api/reload', {})).status).toBe(200)
      const { headers } = await send(gateway.port, 'GET', '/asked')
      expect(tablesOf(headers['ratelimit-policy'])).toEqual([`first-${turn}`, `last-${turn}`])
    }
    isOver = true
    await Promise.all(asking)
    expect([...seen.keys()].sort()).toEqual([0, 1, 2].map((turn) => `200 first-${turn},last-${turn}`))
  },
)
