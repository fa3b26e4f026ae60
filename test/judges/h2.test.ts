import { expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { startGateway } from '../support/gateway/gateway.ts'
import { testSeed } from '../support/random/seed.ts'
import { askPythonWhile } from './python.ts'

/*
 * A client of python-h2 (Debian's python3-h2) opens streams, uploads, resets, and widens or narrows windows at random. The library follows
 * the state machine of RFC 9113: it reports a frame that exceeds a window, or that its stream's state does not allow. Every response must
 * be complete at the end.
 */

const SESSIONS = Number(process.env['JUDGE_SAMPLES'] ?? 500)

const digits = Buffer.alloc(200_000, '0123456789abcdef')

test('python-h2 finds the states and windows of the gateway in order', async () => {
  const backend = await startBackend((request, response) => {
    if (request.url === '/echo') request.pipe(response)
    else response.end(digits.subarray(0, Number(request.url?.slice('/bytes/'.length))))
  })
  const gateway = await startGateway({ UPSTREAM_URL: backend.url, MAX_HEADER_SIZE: '64k' })
  const { counts, failures } = (await askPythonWhile('h2_sessions.py', ['python3-h2'], {
    port: gateway.port,
    sessions: SESSIONS,
    seed: testSeed(),
  })) as {
    readonly counts: Readonly<Record<'sessions' | 'requests' | 'responses', number>>
    readonly failures: readonly string[]
  }
  console.log(`python-h2: ${JSON.stringify(counts)}`)
  expect(failures).toEqual([])
  expect(counts.sessions).toBe(SESSIONS)
  expect(counts.responses).toBeGreaterThan(counts.requests / 2)
})
