const HEADER_BYTES = 12
const TYPE_A = 1

/** The question in a query of DNS (RFC 1035 section 4.1.2). */
export function readQuestion(query: Buffer): { readonly name: string; readonly isForAddresses: boolean } {
  const labels: string[] = []
  let at = HEADER_BYTES
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length))
    at += 1 + length
  }
  return { name: labels.join('.').toLowerCase(), isForAddresses: query.readUInt16BE(at + 1) === TYPE_A }
}

/** The response to a query: these IPv4 addresses if the query asks for any, otherwise no records, but no error either. */
export function writeAnswer(query: Buffer, addresses: readonly string[], ttlSeconds: number): Buffer {
  const nameEnd = query.indexOf(0, HEADER_BYTES)
  const question = query.subarray(HEADER_BYTES, nameEnd + 5)
  const { isForAddresses } = readQuestion(query)
  const records = isForAddresses ? addresses.map((address) => recordOf(address, ttlSeconds)) : []
  const header = Buffer.alloc(HEADER_BYTES)
  header.writeUInt16BE(query.readUInt16BE(0), 0)
  // The flags of a response without an error, to a query that asked for recursion.
  header.writeUInt16BE(0x8180, 2)
  header.writeUInt16BE(1, 4)
  header.writeUInt16BE(records.length, 6)
  return Buffer.concat([header, question, ...records])
}

/** A record whose name is a pointer to the name in the question. */
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
