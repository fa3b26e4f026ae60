/**
 * The same text in memory of its own. A part of a head keeps all of it in memory: what outlasts its request is copied.
 *
 * @param text of one character a byte
 */
export function ownCopy(text: string): string {
  return Buffer.from(text, 'latin1').toString('latin1')
}
