import { beforeAll, describe, expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { writeConfigFile } from '../support/run/temporary-directory.ts'

// Next.js (`pages/api`) and @fastify/etag compare `If-None-Match` with the tag of any body, whatever the method and the status. The client
// knows the tag of the 401 for a wrong password, and so gets 304 in its place.

const table = `limits:
  - name: sign-in
    match: POST /sign-in
    key: body:email
    requests: 2
    window: 15m
    countStatus: [401]
    device: { status: [2xx, 3xx] }
  - name: address
    match: '* /files/*'
    key: query:from
    requests: 2
    window: 15m
    countStatus: [401]
`

let gateway: HostedGateway

beforeAll(async () => {
  const backend = await startBackend(({ headers }, response) => {
    response.writeHead(headers['if-none-match'] === undefined ? 401 : 304).end()
  })
  gateway = await startHosted({
    UPSTREAM_URL: backend.url,
    CONFIG_FILE: writeConfigFile(table),
    DEVICE_SECRET: 'a-secret-of-thirty-two-characters-or-more',
  })
})

const tags = { 'if-none-match': '"wrong"' }

test('a sign-in by account that is answered 304 counts as a failed one, and makes no device known', async () => {
  const headers = { 'content-type': 'application/json', ...tags }
  const statuses: number[] = []
  for (let i = 0; i < 3; i++) {
    const reply = await gateway.send('POST', '/sign-in', { headers, body: '{"email":"anna"}' })
    expect(reply.headers).not.toHaveProperty('set-cookie')
    statuses.push(reply.status)
  }
  expect(statuses).toEqual([304, 304, 429])
})

describe.each(['POST', 'PUT', 'DELETE', 'GET', 'HEAD', 'QUERY'])(
  'under a rule by another key, %s',
  (method) => {
    const isConditional = ['GET', 'HEAD', 'QUERY'].includes(method)

    test(`answered 304 ${isConditional ? 'counts only if the rule says so' : 'counts as an error'}`, async () => {
      const statuses: number[] = []
      for (let i = 0; i < 3; i++) {
        const reply = await gateway.send(method, `/files/a?from=${method}`, { headers: tags })
        statuses.push(reply.status)
      }
      expect(statuses).toEqual([304, 304, isConditional ? 304 : 429])
    })
  },
)
