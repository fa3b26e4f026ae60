/** Each block of it is its own number, so that no two pieces of the source are the same. */
const blockBytes = 8
const maxBodyBytes = 4 * 2 ** 20
const messages = 2 ** 13
/** Between the beginnings of two messages in the source. */
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

/** Where a message begins: elsewhere than any other message of its batch. */
function beginningOf(id: number): number {
  return (id % messages) * distance
}

/**
 * Bytes of a body from `offset` on, of 4 MiB at most: they tell their message and their place in it. They must not be
 * changed.
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

/** A request's body is another message than its response's. */
export function uploadId(id: number): number {
  return id + messages / 2
}
