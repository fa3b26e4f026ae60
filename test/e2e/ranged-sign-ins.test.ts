import { beforeAll, describe, expect, test } from 'vitest'
import { startBackend } from '../support/http/backend.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { writeConfigFile } from '../support/run/temporary-directory.ts'

// Apache, as the server of PHP (mod_php) or as a proxy, applies `Range` to responses to any method: what would be 200 becomes 206 or 416.
// Where a form answers a wrong password with 200, clients could hide by it that theirs was wrong.

const table = `limits:
  - name: form
    match: '* /form'
    key: query:from
    requests: 2
    window: 15m
    countStatus: [200, 401]
  - name: api
    match: '* /api'
    key: query:from
    requests: 2
    window: 15m
    countStatus: [401]
`

let gateway: HostedGateway

beforeAll(async () => {
  const backend = await startBackend(({ headers: { range } }, response) => {
    response.statusCode = range === undefined ? 200 : range === 'bytes=9-' ? 416 : 206
    response.end('wrong')
  })
  gateway = await startHosted({ UPSTREAM_URL: backend.url, CONFIG_FILE: writeConfigFile(table) })
})

async function statusesOf(method: string, path: string, range: string): Promise<number[]> {
  const statuses: number[] = []
  for (let i = 0; i < 3; i++) {
    const target = `${path}?from=${method}-${encodeURIComponent(range)}`
    statuses.push((await gateway.send(method, target, { headers: { range } })).status)
  }
  return statuses
}

describe.each(['bytes=0-', 'bytes=9-', 'Bytes=0-0'])('Range: %s', (range) => {
  test('Range is not forwarded with a POST under a rule that counts the status 200', async () => {
    expect(await statusesOf('POST', '/form', range)).toEqual([200, 200, 429])
  })

  test('Range is forwarded with a GET, and if no rule counts the status 200', async () => {
    const status = range === 'bytes=9-' ? 416 : 206
    expect(await statusesOf('GET', '/form', range)).toEqual([status, status, status])
    expect(await statusesOf('POST', '/api', range)).toEqual([status, status, status])
  })
})

test('a Range in other units than bytes is forwarded with a POST, as PostgREST reads it', async () => {
  expect(await statusesOf('POST', '/form', '0-9')).toEqual([206, 206, 206])
})
