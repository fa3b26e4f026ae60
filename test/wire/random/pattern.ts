/** The source consists of blocks that contain their own number, so that no two pieces of it are the same. */
const blockBytes = 8
const maxBodyBytes = 4 * 2 ** 20
const messages = 2 ** 13
/** The distance between the beginnings of two messages in the source. */
const distance = 1_024

const source = makeSource(messages * distance + maxBodyBytes)

function makeSource(bytes: number): Buffer {
  const words = new Uint32Array(bytes / 4)
  for (let block = 0; block < words.length / 2; block++) {
    words[2 * block] = block
    words[2 * block + 1] = ~block
  }
  return Buffer.from(words.buffer)
}

/** The offset at which a message begins, different for all messages of a batch. */
function beginningOf(id: number): number {
  return (id % messages) * distance
}

/**
 * The bytes of a body from `offset` on, which identify their message and their position in it. A body has 4 MiB at most. Callers must not
 * change the bytes.
 */
export function patternBytes(id: number, offset: number, length: number): Buffer {
  const start = beginningOf(id) + offset
  return source.subarray(start, start + length)
}

/** The fault in a piece of a body, or undefined. */
export function patternFault(id: number, offset: number, piece: Buffer): string | undefined {
  const expected = patternBytes(id, offset, piece.length)
  if (expected.equals(piece)) return undefined
  let at = 0
  while (piece[at] === expected[at]) at++
  const start = at - ((offset + at) % blockBytes)
  const isWhole = start >= 0 && start + blockBytes <= piece.length
  const block = isWhole ? piece.readUInt32LE(start) : 0
  const isPatterned = isWhole && piece.readUInt32LE(start + 4) === ~block >>> 0
  const found = isPatterned
    ? `what message ${id} has at ${block * blockBytes - beginningOf(id)}`
    : `0x${piece.subarray(at, at + blockBytes).toString('hex')}`
  return `at ${offset + at} of message ${id} there is ${found}`
}

/** The id of a request's body, which is another message than the body of its response. */
export function uploadId(id: number): number {
  return id + messages / 2
}
