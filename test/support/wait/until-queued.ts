import { send, type GatewayProcess } from '../gateway/gateway.ts'
import { untilMatches } from './until-matches.ts'

/** Waits until `requests` requests are in one of the queues for the backend. @param queue its name in the metrics */
export function untilQueued(
  gateway: Pick<GatewayProcess, 'adminPort'>,
  queue: string,
  requests: number,
): Promise<void> {
  const entries = new RegExp(`^sluice_table_entries{table="${queue}"} ${requests}$`, 'm')
  return untilMatches(async () => (await send(gateway.adminPort, 'GET', '/metrics')).body, entries)
}
