import type { Server, ServerState } from './server.ts'

/** How many servers are in each state. */
export type ServerCounts = Readonly<Record<ServerState, number>>

/** The state of one server, for operators. */
export type ServerReport = {
  /** The name of the route, or `default`. */
  readonly upstream: string
  /** Scheme, host and port. */
  readonly url: string
  /** The IP address, if the host has several. */
  readonly address?: string
  readonly state: ServerState
}

export type ServersReport = {
  readonly counts: ServerCounts
  /** At most a hundred servers, those that are out of use first. */
  readonly listed: readonly ServerReport[]
}

/** Keeps a report small if there are thousands of routes. */
const MAX_LISTED = 100

/** How many of these servers are in each state, 0 included. */
export function countServers(servers: Iterable<Server>): ServerCounts {
  const counts = { available: 0, ejected: 0, unhealthy: 0 }
  for (const { state } of servers) counts[state]++
  return counts
}

/** @param upstreams the name of each, and its servers */
export function reportServers(
  upstreams: readonly { readonly name: string; readonly servers: readonly Server[] }[],
): ServersReport {
  const all = upstreams.flatMap(({ name, servers }) => servers.map((server) => ({ name, server })))
  const isOut = ({ server: { state } }: { readonly server: Server }): boolean => state !== 'available'
  const listed = [...all.filter(isOut), ...all.filter((each) => !isOut(each))].slice(0, MAX_LISTED)
  return {
    counts: countServers(all.map(({ server }) => server)),
    listed: listed.map(({ name, server }) => describeServer(name, server)),
  }
}

/** Names a server by scheme, host and port; its path, user and password are left out. @param upstream the name of its route */
export function describeServer(upstream: string, { place: { url, address }, state }: Server): ServerReport {
  const where = { url: `${url.protocol}//${url.host}`, ...(address !== undefined && { address }) }
  return { upstream, ...where, state }
}
