import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'
import { runClient } from './client.ts'
import { createComparison } from './compare.ts'
import { run } from './run.ts'
import { startServer } from './server.ts'
import { setStage } from './stage.ts'

// Next.js, with Chromium and curl.

const upload = join(makeTemporaryDirectory(), 'upload.bin')

const { direct, ways } = setStage({ start, http2: true })

const compare = createComparison(direct, [
  ['/other'],
  ['/other', '--head'],
  ['/other', '--compressed'],
  ['/other', '--header', 'RSC: 1'],
  ['/moved'],
  ['/not-there'],
  ['/api/events'],
  ['/api/echo', '--data-binary', `@${upload}`],
  ['/api/echo', '--upload-file', upload, '--request', 'POST', '--header', 'Transfer-Encoding: chunked'],
  ['/api/echo'],
])

test.for(ways)('Next.js gives every response, $name', compare)

test.for([direct, ...ways])('a Next.js page works in a browser, $name', async (way) => {
  expect(await runClient('next.js', way, [String(ways.indexOf(way))])).toEqual({
    // Next.js sets it itself if no proxy has set it.
    seenProtocol: new URL(way.origin).protocol.slice(0, -1),
    withoutReload: true,
    protocols: [way.protocol === 'http2' ? 'h2' : 'http/1.1'],
    failures: [],
  })
})

async function start(): Promise<{ port: number; probe: string }> {
  writeFileSync(upload, randomBytes(2 * 1024 * 1024))
  const cwd = join(import.meta.dirname, 'servers/next')
  const program = join(import.meta.dirname, 'node_modules/next/dist/bin/next')
  const env = { NEXT_TELEMETRY_DISABLED: '1' }
  // The build may take long.
  await run([process.execPath, program, 'build'], { cwd, env, timeoutMs: 280_000 })
  const port = await startServer(
    process.execPath,
    (free) => [program, 'start', '--hostname', '127.0.0.1', '--port', String(free)],
    { ready: /Ready in/, cwd, env },
  )
  return { port, probe: '/other' }
}
