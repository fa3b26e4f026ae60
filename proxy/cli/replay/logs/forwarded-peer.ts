/**
 * Splits a list of addresses as in `X-Forwarded-For`, which some servers log in place of the peer. The last address was added by the proxy
 * next to the server, so it is taken for the peer's, and the others for the header that the peer sent.
 */
export function splitForwarded(list: string): {
  readonly peer: string
  readonly forwardedFor: Readonly<Record<string, string>>
} {
  const comma = list.lastIndexOf(',')
  if (comma === -1) return { peer: list, forwardedFor: {} }
  return { peer: list.slice(comma + 1).trim(), forwardedFor: { 'x-forwarded-for': list.slice(0, comma) } }
}
