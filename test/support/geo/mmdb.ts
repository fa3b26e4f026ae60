import { isIpv4, parseAddressRange } from '../../../proxy/request/addresses/ip-address.ts'

/** A record of a database: maps of texts, numbers and maps. */
export type MmdbRecord = { readonly [name: string]: string | number | MmdbRecord }

const marker = Buffer.from('abcdef4d61784d696e642e636f6d', 'hex')

type Child = { node: number } | { data: number } | undefined

/**
 * Writes a database by MaxMind's specification (MMDB 2.0), with records of 32 bits. In an IPv6 tree, the first 96 bits of an IPv4 address
 * are 0.
 *
 * @param records by address or CIDR; if some overlap, the longer prefix must come last
 */
export function writeMmdb(records: Readonly<Record<string, MmdbRecord>>, ipVersion: 4 | 6 = 6): Buffer {
  const nodes: [Child, Child][] = [[undefined, undefined]]
  const data: Buffer[] = []
  let dataBytes = 0
  for (const [cidr, record] of Object.entries(records)) {
    const encoded = encode(record)
    insert(nodes, bitsOf(cidr, ipVersion), { data: dataBytes })
    data.push(encoded)
    dataBytes += encoded.length
  }
  const tree = Buffer.alloc(nodes.length * 8)
  for (const [index, children] of nodes.entries())
    for (const [side, child] of children.entries())
      tree.writeUInt32BE(valueOf(child, nodes.length), index * 8 + side * 4)
  const metadata = encode({
    node_count: nodes.length,
    record_size: 32,
    ip_version: ipVersion,
    database_type: 'Test',
    binary_format_major_version: 2,
    binary_format_minor_version: 0,
    build_epoch: 1_700_000_000,
    description: { en: 'for tests' },
  })
  return Buffer.concat([tree, Buffer.alloc(16), ...data, marker, metadata])
}

function bitsOf(cidr: string, ipVersion: 4 | 6): number[] {
  const range = parseAddressRange(cidr)
  if (!range) throw new Error(`${cidr} is no network`)
  const { address, bits } = range
  const isOld = isIpv4(address)
  const all = address.flatMap((group, i) => {
    const value = isOld && i === 5 ? 0 : group
    return Array.from({ length: 16 }, (_, bit) => (value >> (15 - bit)) & 1)
  })
  return ipVersion === 4 ? all.slice(96, bits) : all.slice(0, bits)
}

function insert(nodes: [Child, Child][], bits: readonly number[], leaf: Child): void {
  let at = 0
  for (const [depth, bit] of bits.entries()) {
    const node = nodes[at]
    if (!node) throw new Error('no such node')
    if (depth === bits.length - 1) {
      node[bit] = leaf
      return
    }
    const child = node[bit]
    if (child && 'node' in child) at = child.node
    else {
      // When a network is divided, both halves keep its record.
      const next = nodes.push([child, child]) - 1
      node[bit] = { node: next }
      at = next
    }
  }
}

function valueOf(child: Child, nodeCount: number): number {
  if (!child) return nodeCount
  return 'node' in child ? child.node : nodeCount + 16 + child.data
}

function encode(value: string | number | MmdbRecord): Buffer {
  if (typeof value === 'string') {
    const text = Buffer.from(value)
    return Buffer.concat([control(2, text.length), text])
  }
  if (typeof value === 'number') {
    const bytes = Buffer.alloc(4)
    bytes.writeUInt32BE(value)
    return Buffer.concat([control(6, 4), bytes])
  }
  const entries = Object.entries(value)
  return Buffer.concat([
    control(7, entries.length),
    ...entries.flatMap(([name, of]) => [encode(name), encode(of)]),
  ])
}

function control(type: number, size: number): Buffer {
  return size < 29 ? Buffer.from([(type << 5) | size]) : Buffer.from([(type << 5) | 29, size - 29])
}
