import { gzipSync } from 'node:zlib'
import { beforeAll, describe, expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import type { Reply } from '../support/gateway/gateway.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { writeConfigFile } from '../support/run/temporary-directory.ts'

// tRPC answers a batch whose calls have different statuses with 207, and one that is streamed with 200 before any call has run. Attackers
// choose both: they add a call that does not exist to their guess, or a header.

const table = `limits:
  - name: sign-in
    match: POST /trpc/auth.login
    key: body:email
    requests: 2
    window: 15m
    countStatus: [401]
    device: { status: [2xx, 303] }
  - name: account
    match: POST /trpc/account.login
    key: body:email
    requests: 2
    window: 15m
    countStatus: [401]
  - name: address
    match: '* /files/*'
    requests: 2
    window: 15m
    countStatus: [401]
`

const streamed = { 'trpc-accept': 'application/jsonl' }
const asLines = { accept: 'text/plain, application/JSONL' }

let gateway: HostedGateway
let accounts = 0

beforeAll(async () => {
  const backend = await startBackend((request, response) => {
    const { searchParams } = new URL(request.url ?? '', 'http://backend')
    response.writeHead(Number(searchParams.get('status')))
    response.end()
  })
  gateway = await startHosted({
    UPSTREAM_URL: backend.url,
    CONFIG_FILE: writeConfigFile(table),
    DEVICE_SECRET: 'a-secret-of-thirty-two-characters-or-more',
  })
})

/** Sends the same calls for a new account three times, from a new address. The backend answers with the status. */
async function callThrice(
  path: string,
  status: number,
  sent: Record<string, string> = {},
  method = 'POST',
  bodyOf: (call: string) => string | Buffer = (call) => `{"0":${call}}`,
): Promise<Reply[]> {
  const body = bodyOf(JSON.stringify({ email: `anna-${++accounts}@example.com`, password: 'guess' }))
  const headers = { 'content-type': 'application/json', ...sent }
  // What the gateway cannot read counts by address.
  const from = `127.0.8.${accounts}`
  const replies: Reply[] = []
  for (let i = 0; i < 3; i++)
    replies.push(await gateway.send(method, `${path}?batch=1&status=${status}`, { headers, body, from }))
  return replies
}

const statusesOf = (replies: readonly Reply[]): number[] => replies.map(({ status }) => status)
const cookiesOf = (replies: readonly Reply[]): unknown[] =>
  replies.flatMap(({ headers }) => headers['set-cookie'] ?? [])

describe.each(['auth', 'account'])('sign-ins by account at /trpc/%s.login', (router) => {
  const path = `/trpc/${router}.login`

  test('a batch that is answered 207 counts as a failed sign-in, and makes no device known', async () => {
    const replies = await callThrice(`${path},no.such`, 207)
    expect(statusesOf(replies)).toEqual([207, 207, 429])
    expect(cookiesOf(replies)).toEqual([])
  })

  test.each([
    ['trpc-accept', streamed],
    ['Accept', asLines],
  ])('a batch for which the client asks for a stream by %s counts and makes no device', async (_, sent) => {
    const replies = await callThrice(path, 200, sent)
    expect(statusesOf(replies)).toEqual([200, 200, 429])
    expect(cookiesOf(replies)).toEqual([])
  })

  test.each(['[', ' \n[', '\ufeff['])(
    'a JSON array that begins %j counts and makes no device',
    async (opening) => {
      const replies = await callThrice(path, 200, {}, 'POST', (call) => `${opening}${call}]`)
      expect(statusesOf(replies)).toEqual([200, 200, 429])
      expect(cookiesOf(replies)).toEqual([])
    },
  )

  test('a packed JSON array counts and makes no device', async () => {
    const packed = (call: string): Buffer => gzipSync(`[${call}]`)
    const replies = await callThrice(path, 200, { 'content-encoding': 'gzip' }, 'POST', packed)
    expect(statusesOf(replies)).toEqual([200, 200, 429])
    expect(cookiesOf(replies)).toEqual([])
  })

  test.each(['application/grpc-web+json', 'Application/gRPC'])('a call in %s counts', async (type) => {
    const framed = (call: string): string => `\0\0\0\0\x40${call}`
    const replies = await callThrice(path, 200, { 'content-type': type }, 'POST', framed)
    expect(statusesOf(replies)).toEqual([200, 200, 429])
    expect(cookiesOf(replies)).toEqual([])
  })

  test('a batch that is answered 200 without a stream is a successful sign-in', async () => {
    const replies = await callThrice(path, 200)
    expect(statusesOf(replies)).toEqual([200, 200, 200])
    expect(cookiesOf(replies)).toHaveLength(router === 'auth' ? 3 : 0)
  })
})

test('207 counts under a rule by address only if countStatus names it, since WebDAV answers with it', async () => {
  expect(statusesOf(await callThrice('/files/a', 207, {}, 'PROPFIND'))).toEqual([207, 207, 207])
})
