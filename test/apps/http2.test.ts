import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { authorityFile } from '../support/network/certificates.ts'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'
import { run } from './run.ts'
import { startNodeServer } from './server.ts'
import { setStage } from './stage.ts'

// An HTTP/2 client on Debian's python3-h2 that writes its own frames, against Express.

const { ways } = setStage({ start, http2: true })

test.for(ways.filter(({ protocol }) => protocol === 'http2'))(
  'a client that checks RFC 9113 finds no violation, $name',
  async (way) => {
    const script = join(import.meta.dirname, 'clients/http2_checks.py')
    const output = await run(['/usr/bin/python3', script, way.origin, way.protocol, authorityFile])
    expect(JSON.parse(output)).toEqual({ checks: 66, failures: {} })
  },
)

async function start(): Promise<{ port: number; probe: string }> {
  const files = makeTemporaryDirectory()
  writeFileSync(join(files, 'page.html'), '<p>Hello, HTTP/2</p>')
  return { port: await startNodeServer('express.js', { FILES: files }), probe: '/' }
}
