/** The size of a word of an address: four words for IPv6, one for IPv4. */
export const WORD_BITS = 32

/** Joins two 16-bit groups to an unsigned word. */
export function wordOf(high: number, low: number): number {
  return ((high << 16) | low) >>> 0
}

/** Returns a word with its first `bits` bits set: no bits for 0 and less, all bits for 32 and more. */
export function prefixMask(bits: number): number {
  return bits <= 0 ? 0 : bits >= WORD_BITS ? 0xffff_ffff : (0xffff_ffff << (WORD_BITS - bits)) >>> 0
}
