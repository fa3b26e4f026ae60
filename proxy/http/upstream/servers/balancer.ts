import type { Server } from './server.ts'

/**
 * Picks a server for a request.
 *
 * @param mayUse whether a server may be used now
 * @returns undefined if no server may be used
 */
export type PickServer = (
  servers: readonly Server[],
  mayUse: (server: Server) => boolean,
) => Server | undefined

/** Picks each server in turn. */
export function createRoundRobin(): PickServer {
  let turn = 0
  return (servers, mayUse) => {
    for (let step = 0; step < servers.length; step++) {
      const server = servers[turn++ % servers.length]
      if (server && mayUse(server)) return server
    }
    return undefined
  }
}

/**
 * Picks the one of two servers that has fewer requests (Mitzenmacher, "The power of two choices in randomized load balancing", 2001). One
 * of the two is the next in turn; it also gets the request on a tie, so that sequential requests are spread evenly.
 *
 * @param random at least 0 and less than 1
 */
export function createLeastConnections(random: () => number): PickServer {
  const nextInTurn = createRoundRobin()
  return (servers, mayUse) => {
    const first = nextInTurn(servers, mayUse)
    if (!first || first.load === 0) return first
    const others = servers.filter((server) => server !== first && mayUse(server))
    const second = others[Math.floor(random() * others.length)]
    return second && second.load < first.load ? second : first
  }
}
