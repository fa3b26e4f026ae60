import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { atEndOfFile } from '../run/at-end.ts'
import { readQuestion, writeAnswer } from './dns-records.ts'

export type DnsServer = {
  readonly port: number
  /** The IPv4 addresses in each answer from now on; undefined means no answer at all. */
  addresses: readonly string[] | undefined
  /** Queries for IPv4 addresses so far. */
  readonly asked: () => number
}

/** A DNS server that answers every name with the same IPv4 addresses (RFC 1035). */
export async function startDnsServer(
  addresses: readonly string[] | undefined,
  ttlSeconds: number,
): Promise<DnsServer> {
  const socket = createSocket('udp4')
  let asked = 0
  socket.on('message', (query, from) => {
    if (readQuestion(query).isForAddresses) asked++
    if (!server.addresses) return
    socket.send(writeAnswer(query, server.addresses, ttlSeconds), from.port, from.address)
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  let isOpen = true
  atEndOfFile(() => {
    // Called at the end of each test file of this process, not only of this one.
    if (isOpen) socket.close()
    isOpen = false
  })
  const server: DnsServer = { port: socket.address().port, addresses, asked: () => asked }
  return server
}

/** Settings of a process that resolves names with this server unless they are in the hosts file. */
export function resolvingWith({ port }: Pick<DnsServer, 'port'>): Record<string, string> {
  const patch = `import dns from 'node:dns'
    const { Resolver } = dns.promises
    dns.promises.Resolver = class extends Resolver {
      constructor(options) {
        super(options)
        this.setServers(['127.0.0.1:${port}'])
      }
    }
    ;(await import('node:module')).syncBuiltinESMExports()`
  return { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(patch)}` }
}
