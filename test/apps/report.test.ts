import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { runHosted } from '../support/gateway/hosted-command.ts'
import { directoryWith } from '../support/gateway/settings.ts'
import { runClient } from './client.ts'

test('the report of replay can be read on a phone', async () => {
  const folder = directoryWith('limits: [{ name: login, match: POST /login, requests: 30, window: 100s }]\n')
  const lines = Array.from({ length: 2000 }, (_, at) => {
    const time = new Date(Date.UTC(2026, 2, 1) + at * 1000).toISOString().slice(11, 19)
    return `192.0.2.${at % 7} - - [01/Mar/2026:${time} +0000] "POST /login HTTP/1.1" 200 5 "-" "curl"\n`
  })
  writeFileSync(join(folder, 'access.log'), lines.join(''))
  const { status, stdout } = await runHosted(['replay', '--html', '--suggest', 'access.log'], {}, folder)
  expect(status).toBe(0)
  const file = join(folder, 'report.html')
  writeFileSync(file, stdout)
  const seen = await runClient('report.js', { name: 'file', protocol: 'http', origin: `file://${file}` })
  for (const { isTooWide, smallestText, narrowestTable } of Object.values(seen) as Record<
    string,
    number | boolean
  >[]) {
    expect(isTooWide).toBe(false)
    expect(smallestText).toBeGreaterThan(9)
    expect(narrowestTable).toBeGreaterThan(300)
  }
})
