/** Maximum addresses to read in a text. A sign-in has one. */
const MAX_ADDRESSES = 4

/** Characters around an address. Comments and quoted names may contain any of them. */
const around = /[<>();:]/

/** Characters that `FILTER_SANITIZE_EMAIL` drops, and a plus, which is a space in a form. */
const mayBeDropped = /[^\w!#$%&'*=?^`{|}~@.[\]-]/
const dropped = /[^\w!#$%&'*+=?^`{|}~@.[\]-]/g

/** Whether PHP may find another address in a text, with or without escapes, by dropping characters. */
export function mayBeSanitized(text: string): boolean {
  return mayBeDropped.test(text) && /@|%40/.test(text)
}

/**
 * Finds the addresses that a text with an e-mail address may stand for. FastAPI (`EmailStr` of pydantic) and Go (`mail.ParseAddress`) read
 * `anna@example.com` in `x <anna@example.com>`, and Go also in `anna@example.com (x)`, `x:anna@example.com;`, `"an\na"@example.com` and
 * `anna@ example.com`, each with any text for `x`. PHP's `FILTER_SANITIZE_EMAIL` drops characters that addresses do not have, and reads it
 * in `an/na@example.com`.
 *
 * @param text one character per byte
 * @returns without the text itself; undefined if there are more than `MAX_ADDRESSES`
 */
export function mailboxAddresses(text: string): readonly string[] | undefined {
  const found = new Set<string>()
  for (const piece of text.split(around)) if (piece.includes('@')) found.add(addressOf(piece))
  found.delete(text)
  if (found.size > MAX_ADDRESSES) return undefined
  if (text.includes('@')) found.add(text.replace(dropped, ''))
  found.delete(text)
  return [...found]
}

function addressOf(piece: string): string {
  return piece.replace(/["\\]/g, '').replace(/@[\t ]+/g, '@')
}
