/**
 * The length in bits of each byte's code (RFC 7541 appendix B), and, last, the length of EOS. Codes of the same length are consecutive, in
 * the order of the bytes.
 */
const codeLengths: readonly number[] = [
  ...[13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28],
  ...[28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6],
  ...[
    6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7,
  ],
  ...[
    8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7,
    15,
  ],
  ...[11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23],
  ...[23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23],
  ...[21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26, 26],
  ...[26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21],
  ...[22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27],
  ...[27, 26, 30],
]
const EOS = 256

const NO_SYMBOL = 0x1ff
const FAILS = 0x8000_0000

/**
 * For each node of the tree of codes and each value of four bits: the node that these bits lead to, in the upper bits, and the byte that
 * they complete, in the lower bits. No code is shorter than five bits, so four bits complete at most one byte.
 */
const steps: Int32Array = makeSteps()
/** Nodes reached by fewer than eight 1 bits. A string may end at these (section 5.2). */
const isPadding: Uint8Array = makePadding()

type Tree = { readonly zero: number[]; readonly one: number[] }

/** Children of each node: the number of a node, or a negative number for a symbol. */
function makeTree(): Tree {
  const tree: Tree = { zero: [0], one: [0] }
  let code = 0
  for (let bits = 1; bits <= 30; bits++) {
    codeLengths.forEach((length, symbol) => {
      if (length === bits) addCode(tree, code++, bits, symbol)
    })
    code *= 2
  }
  return tree
}

function addCode({ zero, one }: Tree, code: number, bits: number, symbol: number): void {
  let node = 0
  for (let bit = bits - 1; bit >= 0; bit--) {
    const children = Math.floor(code / 2 ** bit) % 2 === 1 ? one : zero
    if (bit === 0) children[node] = -1 - symbol
    else if (children[node] === 0) {
      children[node] = zero.length
      node = zero.length
      zero.push(0)
      one.push(0)
    } else node = children[node] ?? 0
  }
}

function makeSteps(): Int32Array {
  const { zero, one } = makeTree()
  const made = new Int32Array(zero.length * 16)
  for (let node = 0; node < zero.length; node++)
    for (let nibble = 0; nibble < 16; nibble++) {
      let at = node
      let symbol = NO_SYMBOL
      let fails = false
      for (let bit = 3; bit >= 0; bit--) {
        const next = ((nibble >> bit) & 1 ? one : zero)[at] ?? 0
        if (next >= 0) at = next
        else {
          symbol = -1 - next
          fails ||= symbol === EOS
          at = 0
        }
      }
      made[node * 16 + nibble] = (at << 9) | symbol | (fails ? FAILS : 0)
    }
  return made
}

function makePadding(): Uint8Array {
  const { zero, one } = makeTree()
  const made = new Uint8Array(zero.length)
  let node = 0
  for (let bits = 0; bits < 8; bits++) {
    made[node] = 1
    node = one[node] ?? 0
  }
  return made
}

/** The buffer that strings are decoded in. Grows to the longest string, at five bits per byte. */
let room = Buffer.allocUnsafeSlow(4 * 1024)

/** Returns the text of the bytes from `start` to `end`, one character a byte, or undefined for an invalid Huffman encoding. */
export function decodeHuffman(bytes: Buffer, start: number, end: number): string | undefined {
  const maxLength = Math.ceil(((end - start) * 8) / 5)
  if (room.length < maxLength) room = Buffer.allocUnsafeSlow(maxLength)
  let node = 0
  let written = 0
  for (let at = start; at < end; at++) {
    const byte = bytes[at] ?? 0
    let step = steps[node * 16 + (byte >> 4)] ?? 0
    if (step < 0) return undefined
    if ((step & NO_SYMBOL) !== NO_SYMBOL) room[written++] = step
    node = step >> 9
    step = steps[node * 16 + (byte & 15)] ?? 0
    if (step < 0) return undefined
    if ((step & NO_SYMBOL) !== NO_SYMBOL) room[written++] = step
    node = step >> 9
  }
  if (isPadding[node] !== 1) return undefined
  return room.toString('latin1', 0, written)
}
