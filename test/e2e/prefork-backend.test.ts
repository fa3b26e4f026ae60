import type { RequestListener } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { send } from '../support/gateway/gateway.ts'
import { otherBounds, startHosted } from '../support/gateway/hosted-gateway.ts'
import { connectHttp2, sendHttp2 } from '../support/http/http2.ts'
import { startPreforkBackend } from '../support/http/prefork-backend.ts'
import { runs } from '../support/random/runs.ts'
import { writeConfigFile } from '../support/run/temporary-directory.ts'
import { eventually } from '../support/wait/eventually.ts'

// A prefork backend gives each connection a worker until the connection is closed. While the gateway's idle connections occupy all workers,
// no worker accepts a new connection. The backend here never closes an idle connection, so a request that depended on that would wait
// forever.

const kinds = ['plain', 'slow', 'long', 'upload', 'chunked upload', 'cut', 'closed'] as const
type Kind = (typeof kinds)[number]
type Sent = { readonly kind: Kind; readonly http2: boolean; readonly afterMs: number }

const answer: RequestListener = (request, response) => {
  const kind = decodeURIComponent((request.url ?? '').slice(1)) as Kind
  request.resume().on('end', () => {
    if (kind === 'closed') response.setHeader('connection', 'close')
    if (kind === 'cut') response.write('o', () => response.destroy())
    else if (kind === 'long') response.write('o', () => setTimeout(() => response.end('k'), 60))
    else setTimeout(() => response.end('ok'), kind === 'slow' ? 50 : 5)
  })
}

const drawn = fc.record({
  workers: fc.integer({ min: 1, max: 8 }),
  servers: fc.integer({ min: 1, max: 3 }),
  connections: fc.constantFrom('2', '12', '256'),
  requests: fc.array(
    fc.record<Sent>({
      kind: fc.constantFrom(...kinds),
      http2: fc.boolean(),
      afterMs: fc.constantFrom(0, 0, 0, 20, 100),
    }),
    { minLength: 4, maxLength: 40 },
  ),
})

test('requests do not wait until a prefork backend closes idle connections', async () => {
  await fc.assert(
    fc.asyncProperty(drawn, async ({ workers, servers, connections, requests }) => {
      const backends = await Promise.all(
        Array.from({ length: servers }, () => startPreforkBackend(workers, answer)),
      )
      const upstream = JSON.stringify(backends.map(({ url }) => url))
      const gateway = await startHosted({
        CONFIG_FILE: writeConfigFile(`routes:\n  - { name: app, upstream: ${upstream} }\n`),
        RATE_LIMITING_DISABLED: '1',
        UPSTREAM_CONNECTIONS: connections,
        ...otherBounds({ upstreamMaxAgeMs: 86_400_000 }),
        UPSTREAM_TIMEOUT: '10m',
        UPSTREAM_CONNECT_TIMEOUT: '10m',
      })
      const session = connectHttp2(gateway.port, { cleartext: true })
      const bodies: string[] = []
      const ask = async ({ kind, http2, afterMs }: Sent): Promise<void> => {
        await sleep(afterMs)
        bodies.push(`${kind}: ${await sendOne(kind, http2 ? session : gateway.port)}`)
      }
      requests.forEach((sent) => void ask(sent))
      await eventually('all are answered', () => expect(bodies).toHaveLength(requests.length))
      session.destroy()
      const expected = requests.map(({ kind }) => `${kind}: ${kind === 'cut' ? 'cut' : 'ok'}`)
      expect(bodies.sort()).toEqual(expected.sort())
    }),
    { numRuns: runs(60), endOnFailure: true },
  )
})

async function sendOne(kind: Kind, to: number | ReturnType<typeof connectHttp2>): Promise<string> {
  const path = `/${encodeURIComponent(kind)}`
  const method = kind.endsWith('upload') ? 'POST' : 'GET'
  const body = method === 'POST' ? 'x'.repeat(10_000) : undefined
  if (typeof to === 'number') {
    const headers = kind === 'chunked upload' ? { 'transfer-encoding': 'chunked' } : {}
    const reply = await send(to, method, path, { headers, ...(body !== undefined && { body }) }).catch(
      () => ({ body: 'cut' }),
    )
    return reply.body
  }
  const length = kind === 'upload' ? { 'content-length': 10_000 } : {}
  const reply = await sendHttp2(to, { ':method': method, ':path': path, ...length }, body)
  return reply.resetCode === 0 ? reply.body : 'cut'
}
