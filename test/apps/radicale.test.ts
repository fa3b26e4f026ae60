import { join } from 'node:path'
import { expect, test } from 'vitest'
import { authorityFile } from '../support/network/certificates.ts'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'
import { run } from './run.ts'
import { startServer } from './server.ts'
import { setStage } from './stage.ts'

// Radicale, and the library caldav as its client: MKCALENDAR, PROPFIND, REPORT, and ETags.

const { direct, ways } = setStage({ start, http2: false })

test.for([direct, ...ways])(
  'a calendar is made, filled, searched, changed and deleted, $name',
  async (way) => {
    const script = join(import.meta.dirname, 'clients/caldav_checks.py')
    const name = way === direct ? 'direct' : `way-${ways.indexOf(way)}`
    const output = await run(['/usr/bin/python3', script, way.origin, name, authorityFile])
    expect(JSON.parse(output)).toEqual({ found: 10, events: 39, moved: true, missing: true, name: true })
  },
)

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
