import { randomBytes, randomUUID } from 'node:crypto'
import { createServer, type Server, type ServerOptions, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { baseUrlOf } from '../shared/settings/base-url.ts'
import { errors } from '../shared/error-replies.ts'
import type { Log } from '../shared/log.ts'
import type { Running } from '../shared/shutdown.ts'
import { nameHostSetting } from '../shared/start-error.ts'
import { makeFirstKey } from './first-key.ts'
import { databaseProblem } from './key-database.ts'
import { openKeyStore, type KeyStore } from './key-store.ts'
import { answerParserError, sendError } from './respond.ts'
import { createRoutes } from './routes.ts'
import type { OriginSettings } from './settings.ts'

export type Origin = Running & {
  /** Opens the port. Rejects with the system's error where that cannot be had. */
  listen(): Promise<AddressInfo>
  /**
   * To be called when it listens: what to print at a first start, else nothing.
   *
   * @param keysCommand what makes more keys, but for its arguments
   * @throws SettingsError where the keys' database cannot be written
   */
  makeFirstKey(keysCommand: string): string | undefined
}

const serverOptions: ServerOptions = {
  maxHeaderSize: 16 * 1024,
  headersTimeout: 10_000,
  // Body included: nothing that the origin serves takes one.
  requestTimeout: 30_000,
  connectionsCheckingInterval: 2_000,
  // Longer than a proxy keeps a connection in its pool, so that none is closed just as a request is sent into it.
  keepAliveTimeout: 75_000,
  // Missing and repeated `Host` fields are answered by the routes, in the one shape of errors.
  requireHostHeader: false,
}

/** How long requests in flight may take to finish. A container engine waits 10 s before it kills. */
const graceMs = 5_000

/** @throws SettingsError where the keys' database cannot be used */
export function composeOrigin(settings: OriginSettings, log: Log): Origin {
  const keys = openKeys(settings.originDb)
  const server = createServer(serverOptions, createRoutes({ keys, log, makeRequestId: randomUUID }))
  server.on('checkExpectation', (_, response: ServerResponse) =>
    sendError(response, errors.expectationFailed),
  )
  server.on('clientError', answerParserError)
  const connections = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    connections.add(socket)
    socket.once('close', () => connections.delete(socket))
  })

  return {
    listen: () => listen(server, settings),
    makeFirstKey(keysCommand) {
      const { originHost: host, originPublicUrl, originDb } = settings
      const { port } = server.address() as AddressInfo
      try {
        return makeFirstKey(keys, originPublicUrl ?? baseUrlOf({ host, port }), keysCommand)
      } catch (error) {
        throw databaseProblem(originDb, error)
      }
    },
    async close() {
      await drain(server, connections)
      keys.close()
    },
  }
}

function openKeys(path: string): KeyStore {
  try {
    return openKeyStore(path, { now: () => new Date(), randomBytes })
  } catch (error) {
    throw databaseProblem(path, error)
  }
}

function listen(
  server: Server,
  { originHost: host, originPort: port }: OriginSettings,
): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    server.once('error', (error) => reject(nameHostSetting(error, 'ORIGIN_HOST', host)))
    server.listen(port, host, () => resolve(server.address() as AddressInfo))
  })
}

/** Takes no new connections, lets what is in flight finish for the grace period, then cuts off what is left. */
function drain(server: Server, connections: ReadonlySet<Socket>): Promise<void> {
  return new Promise((resolve) => {
    // RFC 9112 section 9.6: the client is told with its response that the connection ends here.
    server.prependListener('request', (_, response: ServerResponse) => {
      response.shouldKeepAlive = false
    })
    const cutOff = setTimeout(() => server.closeAllConnections(), graceMs)
    // Closes idle connections too. Before Node 26 one that has brought nothing yet is not idle.
    server.close(() => {
      clearTimeout(cutOff)
      resolve()
    })
    for (const socket of connections) if (socket.bytesRead === 0) socket.destroy()
  })
}
