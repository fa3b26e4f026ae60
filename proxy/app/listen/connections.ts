import type { Log } from '../../../shared/log.ts'
import { collectYoungGarbage, returnMemory } from '../../../shared/v8-gc.ts'
import type { GatewaySettings } from '../../config/settings.ts'
import { ConnectionLimit } from '../../http/connection/connection-limit.ts'
import { readProxyHeader } from '../../http/connection/proxy-protocol.ts'
import { SlowClients } from '../../http/connection/slow-clients.ts'
import type { AddressReader } from '../../request/addresses/client-address.ts'
import type { Telemetry } from '../../telemetry/telemetry.ts'
import { createUnreadLog } from '../../telemetry/unread/unread-log.ts'
import { trimHeapAfterBursts } from '../memory/heap-trim.ts'
import { scheduleMinorGcs } from '../memory/minor-gc.ts'
import type { ClientServer } from './server.ts'

/** Approximate memory of one open connection. */
const BYTES_PER_CONNECTION = 16 * 1024

/** The bounds on client connections and their memory. */
export type ClientConnections = {
  readonly connectionLimit: ConnectionLimit
  readonly slowClients: SlowClients
  close(): void
}

/** @param deps.now monotonic milliseconds */
export function composeConnections(
  { server }: ClientServer,
  settings: GatewaySettings,
  deps: {
    readonly addresses: AddressReader
    readonly telemetry: Telemetry
    readonly log: Log
    readonly now: () => number
  },
): ClientConnections {
  const { addresses, telemetry, log, now } = deps
  const connectionLimit = new ConnectionLimit(server, {
    maxConnections: settings.maxConnections,
    maxConnectionsPerClient: settings.maxConnectionsPerClient,
    readPeer: (address) => addresses.readPeer(address),
    readNamedAddress: settings.proxyProtocol
      ? (socket) => readProxyHeader(socket, settings.headersTimeoutMs)
      : undefined,
    telemetry,
    log,
    logAddresses: settings.logAddresses,
    now,
  })
  const slowClients = new SlowClients(settings, now, createUnreadLog(log, settings))
  telemetry.observeTable('unread-bytes', () => slowClients.readUnread())
  const stopReturningMemory = trimHeapAfterBursts(
    () => connectionLimit.size * BYTES_PER_CONNECTION + slowClients.readUnread().size,
    returnMemory,
  )
  const stopMinorGcs = scheduleMinorGcs(() => connectionLimit.accepted, collectYoungGarbage)

  return {
    connectionLimit,
    slowClients,
    close() {
      slowClients.close()
      stopReturningMemory()
      stopMinorGcs()
    },
  }
}
