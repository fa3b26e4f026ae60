import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'

// A backend that authenticates connections, as IIS and others do with NTLM and Negotiate: it attributes the next request on a connection to
// the same user.

let server: Server
let gateway: HostedGateway
/** The number of connections to the backend so far. */
let connections = 0
const users = new WeakMap<Socket, string>()

/** The user in the credentials that a client of such a scheme sends. */
function userIn({ rawHeaders }: IncomingMessage): string | undefined {
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const [name = '', value = ''] = [rawHeaders[i], rawHeaders[i + 1]]
    const [, user] = /(?:^|[\s,])(?:ntlm|negotiate|nego2)\s+user-([a-z]+)/i.exec(value) ?? []
    if (name.toLowerCase() === 'authorization' && user !== undefined) return user
  }
  return undefined
}

beforeAll(async () => {
  server = createServer((request, response) => {
    const { socket } = request
    const user = userIn(request)
    if (user !== undefined) users.set(socket, user)
    const challenge = new URL(request.url ?? '', 'http://a').searchParams.get('challenge')
    const headers: Record<string, string | string[]> = {}
    if (challenge !== null) {
      headers['www-authenticate'] = challenge.split('|')
      // The next request is the next step of the same login.
      users.set(socket, 'half')
    }
    if (request.url?.startsWith('/persistent')) {
      headers['persistent-auth'] = 'true'
      users.set(socket, 'persistent')
    }
    response.writeHead(challenge === null ? 200 : 401, headers).end(users.get(socket) ?? 'nobody')
  })
  server.on('connection', () => connections++)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  gateway = await startHosted({
    UPSTREAM_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    RATE_LIMITING_DISABLED: '1',
  })
})

afterAll(() => {
  server.closeAllConnections()
  server.close()
})

const asNobody = async (): Promise<string> => (await gateway.send('GET', '/')).body

describe('a connection that is logged in serves nobody else', () => {
  test.each([
    'NTLM user-alice',
    'ntlm  user-alice',
    'Negotiate user-alice',
    'NEGOTIATE user-alice',
    'Nego2 user-alice',
    'Basic YTpi, NTLM user-alice',
    'Basic YTpi,Negotiate user-alice',
  ])('a connection logged in by a request with %s serves nobody else', async (authorization) => {
    expect((await gateway.send('GET', '/', { headers: { authorization } })).body).toBe('alice')
    expect(await asNobody()).toBe('nobody')
    expect((await gateway.send('POST', '/', { headers: { authorization }, body: 'x' })).body).toBe('alice')
    expect(await asNobody()).toBe('nobody')
  })

  test.each([
    'NTLM',
    'Negotiate',
    'negotiate',
    'Negotiate oYG2',
    'Basic realm="a, b", NTLM',
    'Basic|NTLM',
    'Bearer|Negotiate x|Basic',
  ])('a connection whose response asks for %s serves nobody else', async (challenge) => {
    const reply = await gateway.send('GET', `/?challenge=${encodeURIComponent(challenge)}`)
    expect(reply.status).toBe(401)
    expect(reply.headers['www-authenticate']).toBe(challenge.replaceAll('|', ', '))
    expect(await asNobody()).toBe('nobody')
  })

  test('a connection whose response has Persistent-Auth serves nobody else', async () => {
    expect((await gateway.send('GET', '/persistent')).headers['persistent-auth']).toBe('true')
    expect(await asNobody()).toBe('nobody')
  })

  test('no request of any client, in any order, uses the login of another', async () => {
    const asked = fc.oneof(
      fc.constant({ user: 'nobody', authorization: undefined }),
      fc
        .record({
          user: fc.constantFrom('alice', 'bob'),
          scheme: fc.constantFrom('NTLM', 'ntlm', 'Negotiate', 'nEGOTIATE', 'Basic x, NTLM'),
        })
        .map(({ user, scheme }) => ({ user, authorization: `${scheme} user-${user}` })),
    )
    await fc.assert(
      fc.asyncProperty(
        fc.array(asked, { minLength: 2, maxLength: 12 }),
        fc.boolean(),
        async (requests, together) => {
          const ask = async ({ authorization }: { authorization: string | undefined }): Promise<string> =>
            (
              await gateway.send('GET', '/', {
                headers: authorization === undefined ? {} : { authorization },
              })
            ).body
          const answers: string[] = []
          if (together) answers.push(...(await Promise.all(requests.map(ask))))
          else for (const request of requests) answers.push(await ask(request))
          expect(answers).toEqual(requests.map(({ user }) => user))
        },
      ),
      { numRuns: 30 },
    )
  })
})

test.each([
  ['Basic bnRsbTpuZWdvdGlhdGU=', ''],
  ['Bearer ntlm.negotiate.x', ''],
  ['Digest username="ntlm"', ''],
  ['NTLMish x', ''],
  ['', 'Basic realm="ntlm"'],
  ['', 'Bearer realm=negotiate'],
])('a connection serves others after %s and the challenge %s', async (authorization, challenge) => {
  await asNobody()
  const before = connections
  const headers = authorization === '' ? {} : { authorization }
  await gateway.send('GET', challenge === '' ? '/' : `/?challenge=${encodeURIComponent(challenge)}`, {
    headers,
  })
  await asNobody()
  expect(connections - before).toBe(0)
})
