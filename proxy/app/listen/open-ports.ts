import type { AddressInfo, ListenOptions, Server } from 'node:net'
import type { GatewaySettings } from '../../config/settings.ts'
import type { DecisionsListener } from './decisions/listener.ts'
import { listenOn } from './server.ts'

/** The ports for clients, and for other proxies that send auth requests. */
export type OpenPorts = Pick<AddressInfo, 'address' | 'port'> & { readonly decisionsPort?: number }

/**
 * Opens the ports for decisions and for clients, in this order.
 *
 * @param options options of the clients' port, in addition to host and port or in place of them
 */
export async function openPorts(
  { host, port, decisionsPort }: Pick<GatewaySettings, 'host' | 'port' | 'decisionsPort'>,
  { server, decisions }: { readonly server: Server; readonly decisions: DecisionsListener | undefined },
  options: ListenOptions,
): Promise<OpenPorts> {
  const where = host === undefined ? {} : { host }
  const forDecisions = await decisions?.listen({ ...where, port: decisionsPort })
  const bound = await listenOn(server, { ...where, port, ...options }, { host: 'HOST', port: 'PORT' })
  return {
    address: bound.address,
    port: bound.port,
    ...(forDecisions !== undefined && { decisionsPort: forDecisions }),
  }
}
