import { beforeAll, describe, expect, test } from 'vitest'
import { openConnection, openConnections, type ClientConnection } from '../support/http/client-connections.ts'
import { send, startGateway, type GatewayProcess } from '../support/gateway/gateway.ts'

/**
 * The attack: a client that reaches the admin port without a token occupies all of its connections, as slowly as possible. If a probe of
 * `/livez` then gets no response, the orchestrator restarts the gateway.
 */

const token = 'correct-horse-battery-staple'
const authorization = `Bearer ${token}`
const body = '{"client":{"ip":"192.0.2.7"}}'
const post = (fields: string): string =>
  `POST /api/clients/inspect HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n` +
  `Content-Length: ${body.length}\r\n${fields}\r\n`

let withToken: GatewayProcess
let without: GatewayProcess

beforeAll(async () => {
  ;[withToken, without] = await Promise.all([startGateway({ ADMIN_TOKEN: token }), startGateway()])
})

function leave(connections: readonly ClientConnection[]): void {
  for (const { socket } of connections) socket.destroy()
}

async function status(port: number, path: string, headers = {}): Promise<number> {
  return (await send(port, 'GET', path, { headers })).status
}

describe.each(['127.0.0.1', '127.0.0.2'])(
  'probes from 127.0.0.1 are answered while connections from %s are held open',
  (from) => {
    test.each([
      ['that send nothing', ''],
      ['that send half a head', 'GET /livez HTTP/1.1\r\nHos'],
      ['that send a body slowly', `${post('')}{`],
      ['that have asked for /livez', 'GET /livez HTTP/1.1\r\nHost: a\r\n\r\n'],
      ['that ask for a path not meant for them', 'GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n'],
    ])('%s', async (_, sent) => {
      for (const { adminPort } of [withToken, without]) {
        const attackers: ClientConnection[] = []
        for (let round = 0; round < 3; round++) {
          attackers.push(...(await openConnections(200, adminPort, from, sent)))
          expect(await status(adminPort, '/livez')).toBe(200)
          expect(await status(adminPort, '/readyz')).toBe(200)
          expect(await status(adminPort, '/metrics', { authorization })).toBe(200)
        }
        leave(attackers)
      }
    })
  },
)

test('a request of an operator is completed while others open hundreds of connections', async () => {
  const operator = await openConnection(
    withToken.adminPort,
    '127.0.0.1',
    `${post(`Authorization: ${authorization}\r\n`)}{`,
  )
  // The gateway reads the head before it accepts later connections.
  expect(await status(withToken.adminPort, '/livez')).toBe(200)
  const attackers = await openConnections(600, withToken.adminPort, '127.0.0.1')
  operator.socket.write(body.slice(1))
  await operator.until(/^HTTP\/1\.1 200 .*"states"/s)
  leave(attackers)
})

test('a connection is kept open for long only if its client has sent the token', async () => {
  const { adminPort } = withToken
  const ask = async (path: string, fields = ''): Promise<ClientConnection> => {
    const head = `GET ${path} HTTP/1.1\r\nHost: a\r\n${fields}\r\n`
    const connection = await openConnection(adminPort, '127.0.0.1', head)
    await connection.until(/\r\n\r\n/)
    return connection
  }
  const operator = await ask('/api/status', `Authorization: ${authorization}\r\n`)
  const others = await Promise.all(['/livez', '/readyz', '/metrics'].map((path) => ask(path)))
  expect(operator.received()).toMatch(/^keep-alive: timeout=75\r$/im)
  for (const other of others) expect(other.received()).toMatch(/^keep-alive: timeout=5\r$/im)
  await Promise.all(others.map(({ closed }) => closed))
  expect(operator.ended()).toBeUndefined()
  leave([operator])
})
