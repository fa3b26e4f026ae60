import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { atEndOfFile } from '../run/at-end.ts'

export type DnsServer = {
  readonly port: number
  /** What each question is answered with from now on: IPv4 addresses. */
  addresses: readonly string[]
  /** Questions for IPv4 addresses so far. */
  readonly asked: () => number
}

const HEADER_BYTES = 12
const TYPE_A = 1

/** A DNS server that knows one set of addresses, for whatever name, and no IPv6 (RFC 1035). */
export async function startDnsServer(addresses: readonly string[], ttlSeconds: number): Promise<DnsServer> {
  const socket = createSocket('udp4')
  let asked = 0
  socket.on('message', (query, from) => {
    const nameEnd = query.indexOf(0, HEADER_BYTES)
    const question = query.subarray(HEADER_BYTES, nameEnd + 5)
    const isForAddresses = question.readUInt16BE(question.length - 4) === TYPE_A
    if (isForAddresses) asked++
    const records = isForAddresses ? server.addresses.map((address) => recordOf(address, ttlSeconds)) : []
    const header = Buffer.alloc(HEADER_BYTES)
    header.writeUInt16BE(query.readUInt16BE(0), 0)
    // A response without an error, to a question that wanted recursion.
    header.writeUInt16BE(0x8180, 2)
    header.writeUInt16BE(1, 4)
    header.writeUInt16BE(records.length, 6)
    socket.send(Buffer.concat([header, question, ...records]), from.port, from.address)
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  atEndOfFile(() => void socket.close())
  const server = { port: socket.address().port, addresses, asked: () => asked }
  return server
}

/** The name is a pointer to that of the question. */
function recordOf(address: string, ttlSeconds: number): Buffer {
  const record = Buffer.alloc(16)
  record.writeUInt16BE(0xc000 + HEADER_BYTES, 0)
  record.writeUInt16BE(TYPE_A, 2)
  record.writeUInt16BE(1, 4)
  record.writeUInt32BE(ttlSeconds, 6)
  record.writeUInt16BE(4, 10)
  Buffer.from(address.split('.').map(Number)).copy(record, 12)
  return record
}

/** Settings of a process in which every lookup of a name asks this server, with the resolver that DNS is asked with in any case. */
export function resolvingWith({ port }: DnsServer): Record<string, string> {
  const patch = `import dns from 'node:dns'
    dns.setServers(['127.0.0.1:${port}'])
    dns.promises.setServers(['127.0.0.1:${port}'])
    const { lookup } = dns
    const inAll = (addresses) => addresses.map((address) => ({ address, family: 4 }))
    dns.lookup = (name, options, done) => {
      if (!name.endsWith('.test')) return lookup(name, options, done)
      dns.resolve4(name, (error, addresses) => {
        if (error) done(error)
        else if (options.all) done(null, inAll(addresses))
        else done(null, addresses[0], 4)
      })
    }
    dns.promises.lookup = async (name) => inAll(await dns.promises.resolve4(name))
    ;(await import('node:module')).syncBuiltinESMExports()`
  return { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(patch)}` }
}
