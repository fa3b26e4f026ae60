/** Maximum addresses to read in a text. A sign-in has one. */
const MAX_ADDRESSES = 4

/** Characters around an address. Comments and quoted names may contain any of them. */
const around = /[<>();:]/

/**
 * Finds the addresses that a text with an e-mail address may stand for. FastAPI (`EmailStr` of pydantic) and Go (`mail.ParseAddress`) read
 * `anna@example.com` in `x <anna@example.com>`, and Go also in `anna@example.com (x)`, `x:anna@example.com;`, `"an\na"@example.com` and
 * `anna@ example.com`, each with any text for `x`.
 *
 * @returns without the text itself; undefined if there are more than `MAX_ADDRESSES`
 */
export function mailboxAddresses(text: string): readonly string[] | undefined {
  const found = new Set<string>()
  for (const piece of text.split(around)) if (piece.includes('@')) found.add(addressOf(piece))
  found.delete(text)
  return found.size > MAX_ADDRESSES ? undefined : [...found]
}

function addressOf(piece: string): string {
  return piece.replace(/["\\]/g, '').replace(/@[\t ]+/g, '@')
}
