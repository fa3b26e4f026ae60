import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { Agent, get, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { startGateway } from '../support/gateway/gateway.ts'
import { writeConfigFile } from '../support/run/temporary-directory.ts'

const page = readFileSync(join(import.meta.dirname, '../../docs/architecture.md'), 'utf8')
const section = page.slice(
  page.indexOf('### The files of a refused request'),
  page.indexOf('## Where the counters are'),
)
const listed = [...section.matchAll(/`((?:proxy|shared)\/[\w/.-]+\.ts)`/g)].map(([, file = '']) => file)

/** A plain table: one rule, no lists, no bans, counters in this process. */
const table = `
limits:
  - { name: login, match: GET /login, requests: 2, window: 1h }
`

test('a refused request enters the files that docs/architecture.md lists, and no others', async () => {
  const gateway = await startGateway({
    CONFIG_FILE: writeConfigFile(table),
    UPSTREAM_URL: 'http://127.0.0.1:9',
    NODE_OPTIONS: `--import=${new URL('../support/gateway/trace-request.ts', import.meta.url).href}`,
  })
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const ask = async (): Promise<number | undefined> => {
    const request = get({ port: gateway.port, host: '127.0.0.1', path: '/login', agent })
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    await text(response)
    return response.statusCode
  }
  // The first requests of a process, of a connection and of a client enter more files.
  for (const status of [502, 502, 429, 429, 429]) expect(await ask()).toBe(status)
  agent.destroy()
  await gateway.process.stop()

  const lines = [...gateway.process.stdout().matchAll(/^entered (\d+) (.*)$/gm)]
  expect(lines.map(([, status]) => status)).toEqual(['502', '502', '429', '429', '429'])
  const entered = JSON.parse(lines.at(-1)?.[2] ?? '') as string[]
  expect(entered.toSorted()).toEqual(listed.toSorted())
  expect(listed.length).toBeLessThanOrEqual(25)
})
