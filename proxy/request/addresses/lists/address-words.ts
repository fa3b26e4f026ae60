/** Addresses as words of 32 bits: four of IPv6, one of IPv4. */
export const WORD_BITS = 32

/** Joins two groups of 16 bits to an unsigned word. */
export function wordOf(high: number, low: number): number {
  return ((high << 16) | low) >>> 0
}

/** A word with so many of its first bits set: none for 0 and less, all for 32 and more. */
export function prefixMask(bits: number): number {
  return bits <= 0 ? 0 : bits >= WORD_BITS ? 0xffff_ffff : (0xffff_ffff << (WORD_BITS - bits)) >>> 0
}
