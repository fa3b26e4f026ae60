import { once } from 'node:events'
import { Agent, request as httpRequest } from 'node:http'
import { connect } from 'node:net'
import { expect, test } from 'vitest'
import { startBackend, startRawBackend } from '../support/http/backend.ts'
import { send, sendRaw, spawnGateway, startGateway } from '../support/gateway/gateway.ts'
import { watchForBusyMachine } from '../support/load/busy-machine.ts'
import { CLOSED_PORT } from '../support/network/ports.ts'
import { untilQueued } from '../support/wait/until-queued.ts'
import { eventually } from '../support/wait/eventually.ts'

test('SIGTERM under load loses no request in flight and ends with status 0', async () => {
  const backend = await startBackend((_, response) => setTimeout(() => response.end('ok'), 30))
  const gateway = await startGateway({ UPSTREAM_URL: backend.url })
  const agent = new Agent({ keepAlive: true, maxSockets: 40 })
  let stopped = false
  const outcomes: string[] = []

  /** A client that sends one request after another over a keep-alive connection until the gateway is gone. */
  const work = async (): Promise<void> => {
    for (;;) {
      const request = httpRequest({ port: gateway.port, path: '/', agent })
      const outcome = await new Promise<string>((resolve) => {
        request.on('error', (error: NodeJS.ErrnoException) => {
          // The gateway may close an idle connection just as the client uses it, and then accepts no new connection.
          resolve(
            stopped && (request.reusedSocket || error.code === 'ECONNREFUSED') ? 'gone' : String(error.code),
          )
        })
        request.on('response', (response) => {
          response.on('error', () => resolve('cut off'))
          response.resume().on('end', () => resolve(`${response.statusCode ?? 0}`))
        })
        request.end()
      })
      if (outcome === 'gone') return
      outcomes.push(outcome)
    }
  }
  const workers = Array.from({ length: 40 }, work)
  await eventually('two hundred are answered', () => outcomes.length >= 200)
  stopped = true
  const judge = watchForBusyMachine()
  const startedMs = performance.now()
  expect(await gateway.process.stop('SIGTERM')).toBe(0)
  judge('until the gateway has ended', performance.now() - startedMs, 3_000)
  await Promise.all(workers)
  agent.destroy()
  expect(new Set(outcomes)).toEqual(new Set(['200']))
  expect(gateway.process.output()).not.toContain('"level":"error"')
})

test('readiness turns to 503 first, and requests that outlast the grace period are cut off', async () => {
  const backend = await startBackend(() => undefined)
  const gateway = await startGateway({ UPSTREAM_URL: backend.url, SHUTDOWN_GRACE: '700ms' })
  expect((await send(gateway.adminPort, 'GET', '/readyz')).status).toBe(200)
  const hanging = httpRequest({ port: gateway.port, path: '/' }).end()
  const cutOff = once(hanging, 'error')
  await eventually('the request has arrived', () => backend.seen.length !== 0)
  const exit = gateway.process.stop('SIGTERM')
  await gateway.process.waitForLine(/"msg":"stopping"/)
  expect((await send(gateway.adminPort, 'GET', '/readyz')).status).toBe(503)
  expect((await send(gateway.adminPort, 'GET', '/livez')).status).toBe(200)
  await expect(send(gateway.port, 'GET', '/')).rejects.toThrow('ECONNREFUSED')
  await cutOff
  expect(await exit).toBe(0)
  const lines = gateway.process.output()
  expect(lines).toMatch(
    /"requestId":".+","reason":"the gateway is stopping and .+","msg":"request aborted by the gateway"/,
  )
  expect(lines).not.toContain('requests to the backend failed')
})

// A load balancer needs a moment to notice the shutdown. Until then it sends connections, whose requests must be served.
test.each(['1', '2'])(
  'during SHUTDOWN_DELAY %s worker(s) say that they are stopping, and still serve requests',
  async (workers) => {
    const backend = await startBackend()
    const gateway = await startGateway({
      UPSTREAM_URL: backend.url,
      SHUTDOWN_DELAY: '4s',
      WORKERS: workers,
    })
    const ping = 'OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'
    expect(await sendRaw(gateway.port, ping)).toMatch(/^HTTP\/1\.1 204 /)
    const startedMs = performance.now()
    const exit = gateway.process.stop('SIGTERM')
    await gateway.process.waitForLine(/"msg":"stopping"/)
    await eventually('the gateway says that it stops', async () =>
      expect(await sendRaw(gateway.port, ping)).toMatch(/^HTTP\/1\.1 503 /),
    )
    expect((await send(gateway.adminPort, 'GET', '/readyz')).status).toBe(503)
    const answer = await sendRaw(gateway.port, 'GET / HTTP/1.1\r\nHost: a\r\n\r\n')
    expect(answer).toMatch(/^HTTP\/1\.1 200 /)
    expect(answer).toMatch(/\r\nconnection: close\r\n/i)
    expect(await exit).toBe(0)
    expect(performance.now() - startedMs).toBeGreaterThan(3_900)
  },
)

test('a request that is still waiting for a connection to the backend then is cut off as well', async () => {
  const backend = await startBackend(() => undefined)
  const gateway = await startGateway({
    UPSTREAM_URL: backend.url,
    UPSTREAM_CONNECTIONS: '1',
    SHUTDOWN_GRACE: '200ms',
  })
  const begin = (head: string): void => {
    const client = connect(gateway.port, '127.0.0.1')
    client.on('error', () => undefined)
    client.write(`${head}\r\nHost: a\r\n\r\n`)
  }
  begin('POST /uploading HTTP/1.1\r\nContent-Length: 99999')
  await eventually('the request has arrived', () => backend.seen.length !== 0)
  begin('GET /waiting HTTP/1.1')
  begin('POST /waiting-to-upload HTTP/1.1\r\nContent-Length: 99999')
  await untilQueued(gateway, 'upstream-queue', 1)
  await untilQueued(gateway, 'upload-queue', 1)
  expect(await gateway.process.stop()).toBe(0)
  expect(gateway.process.output().match(/"msg":"request aborted by the gateway"/g)).toHaveLength(3)
  expect(gateway.process.output()).not.toContain('exiting with open handles')
  expect(backend.seen).toHaveLength(1)
})

test('a connection to the backend that is still being opened then is given up', async () => {
  // A backend that never answers the TLS handshake.
  const backend = await startRawBackend(() => undefined)
  const gateway = await startGateway({
    UPSTREAM_URL: `https://127.0.0.1:${backend.port}`,
    SHUTDOWN_GRACE: '200ms',
  })
  httpRequest({ port: gateway.port })
    .on('error', () => undefined)
    .end()
  await eventually('the connection has arrived', () => backend.connections.length !== 0)
  expect(await gateway.process.stop()).toBe(0)
  expect(gateway.process.output()).toContain('"msg":"request aborted by the gateway"')
  expect(gateway.process.output()).not.toContain('exiting with open handles')
})

test.each(['1', '2'])(
  'a start that waits for Redis is ended by SIGTERM, with %s processes',
  async (workers) => {
    const starting = spawnGateway({ REDIS_URL: `redis://127.0.0.1:${CLOSED_PORT}`, WORKERS: workers })
    await starting.waitForLine(/"msg":"cannot connect to Redis/)
    expect(await starting.stop('SIGTERM')).toBe(0)
    expect(starting.output()).toContain('"msg":"stopped"')
    expect(starting.output()).not.toMatch(/"msg":"(listening|worker listening)"|could not start|unsettled/)
  },
)

test('a worker that hangs does not keep the gateway from stopping, and does not outlive it', async () => {
  const gateway = await startGateway({ WORKERS: '2', SHUTDOWN_GRACE: '0s' })
  await eventually('both workers say so', () =>
    expect(gateway.process.output().match(/"msg":"worker listening"/g)).toHaveLength(2),
  )
  const [, hung] = /"pid":(\d+),"msg":"worker listening"/.exec(gateway.process.output()) ?? []
  process.kill(Number(hung), 'SIGSTOP')
  expect(await gateway.process.stop('SIGTERM')).toBe(0)
  expect(gateway.process.output()).toContain(`"worker":${hung},"msg":"worker does not stop; killing it"`)
  expect(() => process.kill(Number(hung), 0)).toThrow('ESRCH')
})
