import { expect, test } from 'vitest'
import { readExcluded } from '../../../../proxy/cli/replay/excluded.ts'
import { lineReader } from '../../../../proxy/cli/replay/logs/formats.ts'
import { simulate } from '../../../../proxy/cli/replay/simulation/simulation.ts'
import { loadGatewaySettings } from '../../../../proxy/config/settings.ts'

const { settings } = loadGatewaySettings({}, '/')
const noLists = {
  of: (location: string): never => {
    throw new Error(`no list is read, and not ${location}`)
  },
}

test('malformed requests of an excluded client are left out too', () => {
  const { tally, add } = simulate(settings, {
    proxies: [],
    defaultHost: undefined,
    excluded: readExcluded(['192.0.2.66']),
    lists: noLists,
    geo: undefined,
  })
  const read = lineReader('combined')
  for (const ip of ['192.0.2.66', '192.0.2.7']) {
    const line = read(`${ip} - - [10/Oct/2026:13:55:36 +0000] "GET no-slash HTTP/1.1" 400 0 "-" "-"`)
    if (typeof line === 'object' && 'timeMs' in line) add(line)
  }
  expect(tally).toMatchObject({ requests: 1, excluded: 1 })
  expect([...tally.rejected.values()]).toEqual([1])
})
