/**
 * Schemes that authenticate a connection rather than a request: the next request on it is attributed to the same user (RFC 4559 section 6,
 * [MS-NTHT] section 3). `Nego2` is one of Microsoft's.
 */
const scheme = '(?:ntlm|nego[0-9a-z]*)(?![^\\s,;])'
const first = new RegExp(`^[\\s,;]*${scheme}`, 'i')
const any = new RegExp(`(?:^|[\\s,;])${scheme}`, 'i')

/**
 * Whether a value of `Authorization` or `WWW-Authenticate` names such a scheme, alone or in a list. False positives are harmless: the
 * connection is then not reused.
 */
export function logsInConnection(value: string): boolean {
  return first.test(value) || (value.includes(',') && any.test(value))
}
