import { connect } from 'node:net'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { beforeAll, describe, expect, test } from 'vitest'
import { send, sendRaw } from '../support/gateway/gateway.ts'
import { startOrigin, type OriginProcess } from '../support/gateway/origin.ts'
import { freePort } from '../support/network/ports.ts'
import { runNode, spawnNode } from '../support/gateway/process.ts'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'

const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/) as string
const text = expect.stringMatching(/./) as string
const unauthorized = '{"code":401,"error":"Missing or invalid x-api-key header"}'

let origin: OriginProcess

beforeAll(async () => {
  origin = await startOrigin()
})

/** Reads the body of an error, which has the one shape that all errors have. */
function errorOf(body: string): unknown {
  const parsed = JSON.parse(body) as { code: unknown; error: unknown }
  expect(parsed).toEqual({ code: expect.any(Number) as number, error: text })
  return parsed.code
}

/** Sends a raw request, and reads until the origin closes. The request needs `connection: close`. */
async function raw(
  port: number,
  ...lines: string[]
): Promise<{ status: number; head: string; body: string }> {
  const [head = '', body = ''] = (await sendRaw(port, `${lines.join('\r\n')}\r\n\r\n`)).split('\r\n\r\n')
  return { status: Number(/^HTTP\/1\.1 (\d{3}) /.exec(head)?.[1]), head: head.toLowerCase(), body }
}

describe('GET /api/v1/me', () => {
  test('GET /api/v1/me answers exactly the seven fields', async () => {
    const { status, headers, body } = await send(origin.port, 'GET', '/api/v1/me', {
      headers: { 'x-api-key': origin.key },
    })
    expect(status).toBe(200)
    expect(headers).toMatchObject({
      'content-type': 'application/json',
      'content-length': String(Buffer.byteLength(body)),
      'cache-control': 'no-store',
    })
    expect(JSON.parse(body)).toStrictEqual({
      id: text,
      createdAt: time,
      updatedAt: time,
      type: 'production',
      project: { id: text, name: 'Default' },
      appSetupCompleted: false,
      websiteSetupCompleted: false,
    })
  })

  test('HEAD /api/v1/me answers the same without the body', async () => {
    const headers = { 'x-api-key': origin.key }
    const get = await send(origin.port, 'GET', '/api/v1/me', { headers })
    const head = await send(origin.port, 'HEAD', '/api/v1/me', { headers })
    expect(head.status).toBe(200)
    expect(head.body).toBe('')
    expect({ ...head.headers, date: '' }).toEqual({ ...get.headers, date: '' })
  })

  test.each([
    ['a query', '/api/v1/me?a=b'],
    ['an empty query', '/api/v1/me?'],
    ['an absolute target', 'http://whatever.example:1/api/v1/me'],
  ])('GET /api/v1/me is served with %s', async (_, target) => {
    expect((await send(origin.port, 'GET', target, { headers: { 'x-api-key': origin.key } })).status).toBe(
      200,
    )
  })

  test.each<[string, () => string[]]>([
    ['missing', () => []],
    ['empty', () => ['x-api-key:']],
    ['blank', () => ['x-api-key:   ']],
    ['repeated', () => [`x-api-key: ${origin.key}`, `x-api-key: ${origin.key}`]],
    ['repeated in other letters', () => [`x-api-key: ${origin.key}`, `X-API-KEY: ${origin.key}`]],
    ['repeated, once empty', () => [`x-api-key: ${origin.key}`, 'x-api-key:']],
    ['a list', () => [`x-api-key: ${origin.key}, ${origin.key}`]],
    ['unknown', () => [`x-api-key: sluice_${'A'.repeat(43)}`]],
    ['in other letters', () => [`x-api-key: ${origin.key.toUpperCase()}`]],
    ['of 7,000 characters', () => [`x-api-key: ${'k'.repeat(7_000)}`]],
    ['the key and 7,000 characters', () => [`x-api-key: ${origin.key}${'k'.repeat(7_000)}`]],
    ['not ASCII', () => ['x-api-key: \xff\xfe']],
  ])('GET /api/v1/me with a key that is %s answers 401', async (_, fields) => {
    const request = ['GET /api/v1/me HTTP/1.1', 'host: o', 'connection: close', ...fields()]
    const { status, head, body } = await raw(origin.port, ...request)
    expect(status).toBe(401)
    expect(body).toBe(unauthorized)
    expect(head).toContain('\r\ncontent-type: application/json\r\n')
    expect(head).toContain('\r\ncache-control: no-store\r\n')
    expect(head).toContain('\r\nwww-authenticate: ')
  })

  test('a key made or revoked by the command takes effect at once', async () => {
    const keys = (...args: string[]) => runNode('origin/keys.ts', { ORIGIN_DB: origin.database }, args)
    const made = await keys('create', '--project', 'Shop', '--type', 'development', '--json')
    const { id, key } = JSON.parse(made.stdout) as { id: string; key: string }
    const ask = () => send(origin.port, 'GET', '/api/v1/me', { headers: { 'x-api-key': key } })
    const answer = await ask()
    expect(answer.status).toBe(200)
    expect(JSON.parse(answer.body)).toMatchObject({ type: 'development', project: { name: 'Shop' } })
    expect((await keys('revoke', id)).status).toBe(0)
    expect(await ask()).toMatchObject({ status: 401, body: unauthorized })
  })
})

describe('any other request', () => {
  test.each(['POST', 'PUT', 'PATCH', 'DELETE', 'TRACE', 'PURGE'])('%s answers 405', async (method) => {
    for (const path of ['/api/v1/me', '/health']) {
      const { status, headers, body } = await send(origin.port, method, path)
      expect({ status, allow: headers.allow }).toEqual({ status: 405, allow: 'GET, HEAD, OPTIONS' })
      expect(errorOf(body)).toBe(405)
    }
  })

  test('OPTIONS answers with the allowed methods', async () => {
    for (const path of ['/api/v1/me', '/health', '*']) {
      const { status, headers, body } = await send(origin.port, 'OPTIONS', path)
      expect({ status, allow: headers.allow, body }).toEqual({
        status: 204,
        allow: 'GET, HEAD, OPTIONS',
        body: '',
      })
    }
    expect((await send(origin.port, 'OPTIONS', '/')).status).toBe(404)
  })

  test.each([
    '/',
    '/api/v1/me/',
    '/api/v1/me2',
    '/api/v1',
    '/API/v1/me',
    '//api/v1/me',
    '/__proto__',
    '/login',
  ])('%s answers 404', async (path) => {
    const { status, headers, body } = await send(origin.port, 'GET', path, {
      headers: { 'x-api-key': origin.key },
    })
    expect({ status, type: headers['content-type'] }).toEqual({ status: 404, type: 'application/json' })
    expect(errorOf(body)).toBe(404)
  })

  test('a health check needs no key', async () => {
    expect(await send(origin.port, 'GET', '/health')).toMatchObject({ status: 200, body: '{"status":"ok"}' })
  })

  test.each([
    ['no request', 400, ['hello']],
    ['an invalid target', 400, ['GET me HTTP/1.1', 'host: o']],
    ['a target of another scheme', 400, ['GET ftp://o/api/v1/me HTTP/1.1', 'host: o']],
    ['* with GET', 400, ['GET * HTTP/1.1', 'host: o']],
    ['no host', 400, ['GET /api/v1/me HTTP/1.1']],
    ['two hosts', 400, ['GET /api/v1/me HTTP/1.1', 'host: o', 'host: p']],
    ['two lengths', 400, ['GET /health HTTP/1.1', 'host: o', 'content-length: 1', 'content-length: 2']],
    [
      'a length and chunks',
      400,
      ['GET /health HTTP/1.1', 'host: o', 'content-length: 1', 'transfer-encoding: chunked'],
    ],
    ['another expectation', 417, ['GET /health HTTP/1.1', 'host: o', 'expect: cake']],
    ['fields beyond 16 KiB', 431, ['GET /health HTTP/1.1', 'host: o', `x: ${'x'.repeat(17_000)}`]],
  ])('%s answers %i', async (_, code, lines) => {
    const { status, head, body } = await raw(origin.port, ...lines, 'connection: close')
    expect(status).toBe(code)
    expect(errorOf(body)).toBe(code)
    expect(head).toContain('\r\ncontent-type: application/json\r\n')
  })

  test('a body is dropped, and the connection goes on', async () => {
    const body = 'x'.repeat(3_000_000)
    const answers = await sendRaw(
      origin.port,
      `POST /api/v1/me HTTP/1.1\r\nhost: o\r\ncontent-length: ${body.length}\r\n\r\n${body}` +
        'GET /health HTTP/1.1\r\nhost: o\r\nconnection: close\r\n\r\n',
    )
    expect(answers.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 405', 'HTTP/1.1 200'])
  })
})

describe('a request that fails', () => {
  test('a request that fails is answered 500 and logged with its id, and the others are served', async () => {
    const failing = await startOrigin()
    const database = new DatabaseSync(failing.database)
    database.exec('DROP TABLE api_key')
    database.close()
    const ask = (requestId: string) =>
      send(failing.port, 'GET', '/api/v1/me', {
        headers: { 'x-api-key': failing.key, 'x-request-id': requestId },
      })
    expect(await ask('gateway-17.a')).toMatchObject({
      status: 500,
      body: '{"code":500,"error":"Internal error"}',
    })
    const [line] = await failing.process.waitForLine(/"msg":"exception while handling a request"/)
    expect(line).toBeDefined()
    const logged = () =>
      failing.process
        .stdout()
        .split('\n')
        .filter((entry) => entry.includes('exception while handling a request'))
        .map((entry) => JSON.parse(entry) as { level: string; requestId: string; err: { message: string } })
    expect(logged()).toMatchObject([
      {
        level: 'error',
        requestId: 'gateway-17.a',
        err: { message: expect.stringContaining('api_key') as string },
      },
    ])
    await ask('not {well} formed')
    expect((await send(failing.port, 'GET', '/health')).status).toBe(200)
    expect(await failing.process.stop()).toBe(0)
    expect(logged()[1]?.requestId).toMatch(/^[0-9a-f]{8}-[0-9a-f-]{27}$/)
    expect(failing.process.output().split(failing.key), 'the key is told once, and not logged').toHaveLength(
      2,
    )
  })
})

describe('starting', () => {
  test('creates a key once and prints a curl command that works', async () => {
    const database = join(makeTemporaryDirectory(), 'data', 'origin.db')
    const port = await freePort()
    const env = { ORIGIN_DB: database, ORIGIN_PORT: String(port) }
    const first = spawnNode('origin/main.ts', env)
    const [, key = '', url = ''] = await first.waitForLine(
      /^ *curl -H 'x-api-key: (sluice_[\w-]{43})' (http:\/\/127\.0\.0\.1:\d+\/api\/v1\/me)$/,
    )
    expect((await fetch(url, { headers: { 'x-api-key': key } })).status).toBe(200)
    expect(await first.stop()).toBe(0)
    const second = spawnNode('origin/main.ts', env)
    await second.waitForLine(/"msg":"listening"/)
    expect((await fetch(url, { headers: { 'x-api-key': key } })).status).toBe(200)
    expect(await second.stop()).toBe(0)
    expect(second.output()).not.toContain('sluice_')
  })

  test('the origin prints its public address if it is set', async () => {
    const { process } = await startOrigin({ ORIGIN_PUBLIC_URL: 'https://api.example/base/' })
    await process.waitForLine(/^ *curl -H '[^']+' https:\/\/api\.example\/base\/api\/v1\/me$/)
  })

  test.each([
    [
      'a port in use',
      () => ({ ORIGIN_PORT: String(origin.port) }),
      /^cannot listen: 127\.0\.0\.1 port \d+ is in use by another process, set ORIGIN_PORT to another$/,
    ],
    [
      'an address of another machine',
      () => ({ ORIGIN_HOST: '192.0.2.1' }),
      /^cannot listen: ORIGIN_HOST is "192\.0\.2\.1", which is not an address of this machine$/,
    ],
    [
      'a name that no host has',
      () => ({ ORIGIN_HOST: 'none.invalid' }),
      /^cannot listen: ORIGIN_HOST is "none\.invalid", which cannot be resolved \(E\w+\)$/,
    ],
    ['an invalid database', () => ({ ORIGIN_DB: import.meta.dirname }), /^ORIGIN_DB: got ".*", needs .*/],
    ['an invalid port', () => ({ ORIGIN_PORT: '70000' }), /^ORIGIN_PORT: got "?70000"?, needs .*/],
  ])('a start with %s ends with one line and status 1', async (_, env, line) => {
    const database = join(makeTemporaryDirectory(), 'origin.db')
    const { status, stdout, stderr } = await runNode('origin/main.ts', {
      ORIGIN_PORT: '0',
      ORIGIN_DB: database,
      ...env(),
    })
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' })
    expect(stderr.split('\n')).toEqual([expect.stringMatching(line), ''])
  })
})

describe('stopping', () => {
  test('an origin that stops lets a request in flight finish, closes idle connections and ends with status 0', async () => {
    const stopped = await startOrigin()
    const idle = sendRaw(stopped.port, 'GET /health HTTP/1.1\r\nhost: o\r\n\r\n')
    const unused = sendRaw(stopped.port, '')
    const inFlight = connect(stopped.port, '127.0.0.1')
    inFlight.write(`GET /api/v1/me HTTP/1.1\r\nhost: o\r\nx-api-key: ${stopped.key}\r\n`)
    // Connections are accepted in order, so once these are answered, the ones above have been read.
    for (let round = 0; round < 2; round++) await send(stopped.port, 'GET', '/health')

    const startedMs = performance.now()
    const exit = stopped.process.stop()
    expect(await idle).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
    expect(await unused).toBe('')
    expect(performance.now() - startedMs).toBeLessThan(3_000)
    await expect(fetch(`http://127.0.0.1:${stopped.port}/health`)).rejects.toThrow()
    let answer = ''
    inFlight.on('data', (chunk) => (answer += String(chunk))).write('\r\n')
    await new Promise((resolve) => inFlight.on('close', resolve))
    expect(answer).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
    expect(answer.toLowerCase()).toContain('\r\nconnection: close\r\n')
    expect(await exit).toBe(0)
  })
})

test.each([
  ['by npm', { npm_lifecycle_event: 'origin' }, 'npm run keys -- create --project NAME'],
  ['in an image', {}, 'node origin/keys.ts create --project NAME'],
])('started %s, it says how more keys are made there', async (_, env, command) => {
  const { process: origin } = await startOrigin(env)
  expect(origin.stdout()).toContain(`More keys: ${command}\n`)
  expect(await origin.stop()).toBe(0)
})
