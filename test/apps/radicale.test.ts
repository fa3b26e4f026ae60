import { join } from 'node:path'
import { expect, test } from 'vitest'
import { authorityFile } from '../support/network/certificates.ts'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'
import { runClient } from './client.ts'
import { letIn, letInWhenRefused } from './refusals.ts'
import { run } from './run.ts'
import { startServer } from './server.ts'
import { setStage, type Way } from './stage.ts'

// Radicale with two clients: the library caldav, and tsdav over HTTP/2. They use MKCALENDAR, PROPFIND, REPORT, and ETags.

const { direct, ways } = setStage({
  start,
  http2: 'one of several',
  config: 'test/apps/limits/radicale.yaml',
})
const waysOfCaldav = ways.filter(({ protocol }) => protocol !== 'http2')
const waysOfTsdav = ways.filter(({ protocol }) => protocol === 'http2')

const expectedOfCaldav = { found: 10, events: 39, moved: true, missing: true, name: true }

test.for([direct, ...waysOfCaldav])(
  'a calendar is made, filled, searched, changed and deleted, $name',
  async (way) => {
    expect(await caldav(way, 'test')).toEqual({ ...expectedOfCaldav, refused: false })
  },
)

test.for(waysOfCaldav)(
  'a client that is refused in between ends with the same calendar, $name',
  async (way) => {
    await letIn(way, 'tight')
    const { value } = await letInWhenRefused(way, 'tight', caldav(way, 'tight'))
    expect(value).toEqual({ ...expectedOfCaldav, refused: true })
  },
)

test.for([direct, ...waysOfTsdav])(
  'forty requests at once fill a calendar, which is then changed, $name',
  async (way) => {
    expect(await tsdav(way, 'test')).toEqual({ ...expectedOfTsdav(way), isRefused: false })
  },
)

test.for(waysOfTsdav)(
  'forty parallel requests, some of them refused, fill the same calendar, $name',
  async (way) => {
    await letIn(way, 'tight')
    const { value } = await letInWhenRefused(way, 'tight', tsdav(way, 'tight'))
    expect(value).toEqual({ ...expectedOfTsdav(way), isRefused: true })
  },
)

function caldav(way: Way, user: string): Promise<object> {
  const script = join(import.meta.dirname, 'clients/caldav_checks.py')
  return run(['/usr/bin/python3', script, way.origin, user, nameOf(way), authorityFile]).then(
    (output) => JSON.parse(output) as object,
  )
}

const tsdav = (way: Way, user: string): Promise<object> =>
  runClient('caldav.js', way, [user, `js-${nameOf(way)}`])

const expectedOfTsdav = (way: Way): object => ({
  statuses: [201],
  name: `Termine – js-${nameOf(way)}`,
  found: 8,
  objects: 40,
  whole: true,
  updated: true,
  late: 412,
  removed: true,
  left: 39,
  verschoben: 1,
  isOtherState: true,
  isGone: true,
  protocols: [way.protocol === 'http2' ? 'h2' : 'http/1.1'],
})

const nameOf = (way: Way): string => (way === direct ? 'direct' : `way-${ways.indexOf(way)}`)

async function start(): Promise<{ port: number; probe: string }> {
  const root = makeTemporaryDirectory()
  const args = (port: number): string[] => [
    ...['--config', '', '--hosts', `127.0.0.1:${port}`, '--auth-type', 'none'],
    ...[
      '--storage-filesystem-folder',
      join(root, 'collections'),
      '--web-type',
      'internal',
      '--logging-level',
      'info',
    ],
  ]
  const port = await startServer('/usr/bin/radicale', args, { ready: /Radicale server ready/ })
  return { port, probe: '/.web/' }
}
