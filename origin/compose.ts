import { randomBytes, randomUUID } from 'node:crypto'
import type { Server, ServerOptions, ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { answerNodeErrors } from '../shared/node-http-errors.ts'
import { createServer } from '../shared/node-http.ts'
import { baseUrlOf } from '../shared/settings/base-url.ts'
import type { Log } from '../shared/log.ts'
import type { Running } from '../shared/shutdown.ts'
import { nameListenSetting } from '../shared/start-error.ts'
import { makeFirstKey } from './first-key.ts'
import { databaseProblem } from './key-database.ts'
import { openKeyStore, type KeyStore } from './key-store.ts'
import { allowedMethods, createRoutes } from './routes.ts'
import type { OriginSettings } from './settings.ts'

export type Origin = Running & {
  /** Listens on the port. Rejects with the system's error if it cannot. */
  listen(): Promise<AddressInfo>
  /**
   * Call after `listen`. Returns the text to print at the first start, otherwise undefined.
   *
   * @param keysCommand the command that creates more keys, without its arguments
   * @throws SettingsError if the database of keys cannot be written
   */
  makeFirstKey(keysCommand: string): string | undefined
}

const serverOptions: ServerOptions = {
  maxHeaderSize: 16 * 1024,
  headersTimeout: 10_000,
  // Includes the body, which no route expects.
  requestTimeout: 30_000,
  connectionsCheckingInterval: 2_000,
  // Longer than a proxy keeps idle connections, so that no connection is closed while the proxy sends a request on it.
  keepAliveTimeout: 75_000,
  // The routes check `Host`, so that the error has the same format as all others.
  requireHostHeader: false,
}

/** Time for requests in flight to finish. Container engines kill after 10 s. */
const GRACE_MS = 5_000

/** @throws SettingsError if the database of keys cannot be used */
export function composeOrigin(settings: OriginSettings, log: Log): Origin {
  const keys = openKeys(settings.originDb)
  const server = createServer(serverOptions, createRoutes({ keys, log, makeRequestId: randomUUID }))
  answerNodeErrors(server, allowedMethods)
  const connections = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    connections.add(socket)
    socket.once('close', () => connections.delete(socket))
  })

  return {
    listen: () => listen(server, settings),
    makeFirstKey(keysCommand) {
      const { originHost: host, originPublicUrl, originPublished, originDb } = settings
      const { port } = server.address() as AddressInfo
      try {
        return makeFirstKey(
          keys,
          originPublicUrl ?? originPublished ?? baseUrlOf({ host, port }),
          keysCommand,
        )
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
    server.once('error', (error) =>
      reject(nameListenSetting(error, { host: 'ORIGIN_HOST', port: 'ORIGIN_PORT' }, host)),
    )
    server.listen(port, host, () => resolve(server.address() as AddressInfo))
  })
}

/** Stops accepting connections, lets requests in flight finish within the grace period, then closes the rest. */
function drain(server: Server, connections: ReadonlySet<Socket>): Promise<void> {
  return new Promise((resolve) => {
    // Makes responses say `Connection: close` (RFC 9112 section 9.6).
    server.prependListener('request', (_, response: ServerResponse) => {
      response.shouldKeepAlive = false
    })
    const cutOff = setTimeout(() => server.closeAllConnections(), GRACE_MS)
    // Also closes idle connections. Before Node 26, a connection that has not sent a request yet does not count as idle.
    server.close(() => {
      clearTimeout(cutOff)
      resolve()
    })
    for (const socket of connections) if (socket.bytesRead === 0) socket.destroy()
  })
}
