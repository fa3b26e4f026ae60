import { beforeAll, expect, test } from 'vitest'
import { sendRaw } from '../support/gateway/gateway.ts'
import { startHosted, type HostedGateway } from '../support/gateway/hosted-gateway.ts'
import { startOrigin, type OriginProcess } from '../support/gateway/origin.ts'

let origin: OriginProcess
let gateway: HostedGateway

beforeAll(async () => {
  origin = await startOrigin()
  gateway = await startHosted({ UPSTREAM_URL: `http://127.0.0.1:${origin.port}` })
})

const ask = (...fields: string[]): Promise<string> =>
  sendRaw(
    gateway.port,
    ['GET /api/v1/me HTTP/1.1', 'host: o', 'connection: close', ...fields, '', ''].join('\r\n'),
  )

test('GET /api/v1/me answers exactly the seven fields, and is not limited', async () => {
  const replies = await Promise.all(
    Array.from({ length: 300 }, () =>
      gateway.send('GET', '/api/v1/me', { headers: { 'x-api-key': origin.key } }),
    ),
  )
  expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200]))
  for (const { headers, body } of replies.slice(0, 1)) {
    expect(headers['ratelimit']).toBeUndefined()
    expect(Object.keys(JSON.parse(body) as object)).toEqual([
      'id',
      'createdAt',
      'updatedAt',
      'type',
      'project',
      'appSetupCompleted',
      'websiteSetupCompleted',
    ])
  }
})

test.each<[string, () => string[]]>([
  ['missing', () => []],
  ['empty', () => ['x-api-key:']],
  ['repeated', () => [`x-api-key: ${origin.key}`, `x-api-key: ${origin.key}`]],
  ['unknown', () => [`x-api-key: sluice_${'A'.repeat(43)}`]],
  ['of 7,000 characters', () => [`x-api-key: ${'k'.repeat(7_000)}`]],
])('a key that is %s gets 401', async (_, fields) => {
  expect(await ask(...fields())).toMatch(/^HTTP\/1\.1 401 .*\{"code":401,"error":"[^"]+"\}$/s)
})
