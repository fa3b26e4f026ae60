import { createWriteStream } from 'node:fs'
import { join } from 'node:path'
import { once } from 'node:events'
import { expect, test } from 'vitest'
import type { Report } from '../../proxy/cli/replay/report.ts'
import { spawnCommand } from '../support/gateway/process.ts'
import { directoryWith } from '../support/gateway/settings.ts'

const clients = 1000
const seconds = 1000
const table = `limits:
  - { name: login, match: POST /login, requests: 30, window: 100s }
  - { name: api, match: 'GET /api/*', requests: 90, window: 100s }
`
/** Makes the process print its resource usage when it ends. */
const printUse = `data:text/javascript,process.on('exit',()=>console.error(JSON.stringify(process.resourceUsage())))`

test('a million lines are replayed exactly, within 300 MB and 20 s of CPU time', async () => {
  const cwd = directoryWith(table)
  const log = createWriteStream(join(cwd, 'access.log'))
  for (let second = 0; second < seconds; second++) {
    const [, day = '', time = ''] =
      /-(\d\d)T(.{8})/.exec(new Date(Date.UTC(2026, 2, 1) + second * 1000).toISOString()) ?? []
    const lines = Array.from({ length: clients }, (_, i) => {
      const request = i < 200 ? 'POST /login' : `GET /api/items/${i}?page=${second}`
      const agent = 'Mozilla/5.0 (X11; Linux x86_64; rv:120.0) Gecko/20100101 Firefox/120.0'
      return `10.0.${i >> 8}.${i & 255} - - [${day}/Mar/2026:${time} +0000] "${request} HTTP/1.1" 200 99 "-" "${agent}"\n`
    })
    if (!log.write(lines.join(''))) await once(log, 'drain')
  }
  log.end()
  await once(log, 'finish')

  const script = join(import.meta.dirname, '../../proxy/cli/main.ts')
  const command = ['--import', printUse, script, 'replay', '--json', 'access.log']
  const replay = spawnCommand(process.execPath, {}, command, { cwd })
  expect(await replay.exit).toBe(0)
  const { lines, requests, rules } = JSON.parse(replay.stdout()) as Report
  expect(lines).toMatchObject({ read: 1_000_000, unreadable: 0 })
  // Each client sends one request a second. Of 100 in each of ten windows, the rules refuse 70 and 10.
  expect(requests).toMatchObject({
    total: 1_000_000,
    limited: 1_000_000,
    refused: 200 * 700 + 800 * 100,
    late: 0,
  })
  expect(rules).toMatchObject([
    { requests: 200_000, refused: 140_000, clients: 200, clientsRefused: 200 },
    { requests: 800_000, refused: 80_000, clients: 800, clientsRefused: 800 },
  ])
  const use = JSON.parse(replay.stderr().trim()) as {
    maxRSS: number
    userCPUTime: number
    systemCPUTime: number
  }
  expect(use.maxRSS / 1024).toBeLessThan(300)
  expect((use.userCPUTime + use.systemCPUTime) / 1e6).toBeLessThan(20)
})
