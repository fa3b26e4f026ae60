import type { Response } from './ask.ts'
import type { Spelling } from './spelling.ts'

/**
 * Whether a backend that echoes its target in `X-Target` got the bytes as sent, apart from dot segments. True for other backends, and for
 * requests that were not forwarded.
 */
export function isForwardedAsSent({ target }: Spelling, { head }: Response): boolean {
  const [, arrived] = /\r\nx-target: *([^\r]*)/i.exec(head) ?? []
  if (arrived === undefined) return true
  const [, path = target] = /^https?:\/\/[^/?]*(.*)$/i.exec(target) ?? []
  const question = path.indexOf('?')
  const end = question === -1 ? path.length : question
  return arrived === withoutDots(path.slice(0, end)) + path.slice(end)
}

/** Removes dot segments (RFC 3986 section 5.2.4), one segment at a time. */
function withoutDots(path: string): string {
  const kept: string[] = []
  const segments = path
    .replace(/^(?!\/)/, '/')
    .split('/')
    .slice(1)
  for (const [i, segment] of segments.entries()) {
    const isLast = i === segments.length - 1
    if (/^(?:\.|%2e)$/i.test(segment)) {
      if (isLast) kept.push('')
    } else if (/^(?:\.|%2e){2}$/i.test(segment)) {
      kept.pop()
      if (isLast) kept.push('')
    } else kept.push(segment)
  }
  return `/${kept.join('/')}`
}
