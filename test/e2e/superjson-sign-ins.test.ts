import { beforeAll, describe, expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { writeConfigFile } from '../support/run/temporary-directory.ts'

// superjson, which tRPC and Blitz use to read bodies, replaces places of a body by others that it names in `meta`. Attackers write another
// account in each guess, and have it replaced by the one that they want.

const table = `limits:
  - name: trpc
    match: POST /trpc/auth.login
    key: body:json.user.email
    requests: 2
    window: 15m
  - name: blitz
    match: POST /api/rpc/login
    key: body:params.email
    requests: 2
    window: 15m
`

let gateway: HostedGateway
let addresses = 0

beforeAll(async () => {
  const backend = await startBackend((_, response) => {
    response.end()
  })
  gateway = await startHosted({ UPSTREAM_URL: backend.url, CONFIG_FILE: writeConfigFile(table) })
})

/** Sends a body from a new address, and returns the status. */
async function send(path: string, body: string): Promise<number> {
  const headers = { 'content-type': 'application/json' }
  return (await gateway.send('POST', path, { headers, body, from: `127.0.12.${++addresses}` })).status
}

const call = (equalities: string): string =>
  `{"json":{"user":{"email":"decoy"},"x":"anna"},"meta":{"referentialEqualities":${equalities},"v":1}}`

describe('a call of tRPC', () => {
  test.each([
    ['the account', '{"x":["user.email"]}'],
    ['the account, after another place', '{"x":["y","user.email"]}'],
    ['the account, with escapes', String.raw`{"x":["user.\u0065mail"]}`],
    ['an object with the account', '{"y":["user"]}'],
    ['the account in a second name of its object', '{"user":["y"],"x":["y.email"]}'],
    ['an object with the account by the whole', '[["user"],{"x":["y"]}]'],
  ])('is refused if superjson would replace %s', async (_, equalities) => {
    expect(await send('/trpc/auth.login', call(equalities))).toBe(400)
    expect(await send('/trpc/auth.login?batch=1', `{"0":${call(equalities)}}`)).toBe(400)
    expect(await send('/trpc/auth.login,x?batch=1', `{"1":{},"0":${call(equalities)}}`)).toBe(400)
  })

  test('counts by its account if superjson replaces other places', async () => {
    const statuses: number[] = []
    for (const place of ['emails', 'a.backup_email', 'from'])
      statuses.push(await send('/trpc/auth.login', call(`{"x":["${place}"]}`)))
    expect(statuses).toEqual([200, 200, 429])
  })
})

test('a call of Blitz is refused if superjson would replace the account', async () => {
  const blitz = (place: string): string =>
    `{"params":{"email":"decoy","x":"anna"},"meta":{"params":{"referentialEqualities":{"x":["${place}"]}}}}`
  expect(await send('/api/rpc/login', blitz('email'))).toBe(400)
  expect(await send('/api/rpc/login', blitz('other'))).toBe(200)
})
