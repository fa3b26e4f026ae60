import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { readDecisionStream } from '../../proxy/limits/clients/crowdsec/local-api.ts'
import { loadKeySet } from '../../proxy/limits/keys/tokens/load-key-set.ts'
import { startBackend } from '../support/http/backend.ts'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'

const polls: [string, (url: string) => Promise<unknown>][] = [
  [
    'decisions of CrowdSec',
    (url) => {
      const keyFile = join(makeTemporaryDirectory(), 'key')
      writeFileSync(keyFile, 'a-key')
      const { signal } = new AbortController()
      return readDecisionStream(
        { url, keyFile, everyMs: 1000 },
        { startup: true, userAgent: 'sluice/0', signal },
        () => undefined,
      )
    },
  ],
  ['a key set', (url) => loadKeySet({ kind: 'url', url })],
]

beforeEach(() => {
  // Only the poll itself may end the response: no timeout fires, and the spy keeps the response from the garbage collector.
  vi.spyOn(AbortSignal, 'timeout').mockReturnValue(new AbortController().signal)
  vi.spyOn(globalThis, 'fetch')
})
afterEach(() => void vi.restoreAllMocks())

// Otherwise each poll would hold a new connection until its timeout, which is a minute for CrowdSec.
test.each(polls.flatMap(([what, poll]) => [403, 500].map((status) => ({ what, poll, status }))))(
  'a poll for $what that gets $status does not wait for the rest of the response',
  async ({ poll, status }) => {
    const { promise: closed, resolve } = Promise.withResolvers<unknown>()
    const { url } = await startBackend((_, response: ServerResponse) => {
      response.writeHead(status).write('and then nothing')
      resolve(once(response, 'close'))
    })
    await expect(poll(url)).rejects.toThrow(String(status))
    await closed
  },
)
