import { reasonOf, showValue } from '../../../../shared/settings/problems.ts'
import type { BadLine, ReadList } from './read-list.ts'

type Unread = Exclude<ReadList, { readonly data: unknown }>

/** Returns the messages about a list that cannot be used, each with its place: `./vpn.txt:17: got …`. */
export function problemsOfList(file: string, read: Unread): string[] {
  if ('tooMany' in read) return [`${file}: needs at most ${read.tooMany} entries`]
  const bad = read.bad.map(
    ({ line, text }) =>
      `${file}:${line}: got ${showValue(text)}, needs one IP address or CIDR, or a comment after #`,
  )
  return read.more ? [...bad, `${file}: there are more such lines`] : bad
}

/** Returns the message for a file that cannot be read. */
export function problemOfFile(file: string, error: unknown): string {
  return `${file}: cannot be read (${reasonOf(error)})`
}

/** Returns the warning for a line such as `0.0.0.0/0`. @param line the line number, from 1 */
export function warnOfEverybody(file: string, line: number): string {
  return `${file}:${line}: every client is on the list`
}

/** Returns the warning for the first network of a file that matches no client behind NAT64. */
export function warnOfNat64(file: string, { line, text }: BadLine): string {
  return `${file}:${line}: ${text} ${NOT_BEHIND_NAT64}`
}

/** The message about such a network in a list. */
export const NOT_BEHIND_NAT64 =
  'does not match clients behind NAT64, which are matched by their IPv4 addresses: list these'
