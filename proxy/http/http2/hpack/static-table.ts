/** The static table (RFC 7541 appendix A): name, value, name, value… from index 1 on. */
export const staticTable: readonly string[] = [
  ...[':authority', '', ':method', 'GET', ':method', 'POST', ':path', '/', ':path', '/index.html'],
  ...[':scheme', 'http', ':scheme', 'https', ':status', '200', ':status', '204', ':status', '206'],
  ...[':status', '304', ':status', '400', ':status', '404', ':status', '500', 'accept-charset', ''],
  ...['accept-encoding', 'gzip, deflate', 'accept-language', '', 'accept-ranges', '', 'accept', ''],
  ...['access-control-allow-origin', '', 'age', '', 'allow', '', 'authorization', '', 'cache-control', ''],
  ...['content-disposition', '', 'content-encoding', '', 'content-language', '', 'content-length', ''],
  ...['content-location', '', 'content-range', '', 'content-type', '', 'cookie', '', 'date', '', 'etag', ''],
  ...['expect', '', 'expires', '', 'from', '', 'host', '', 'if-match', '', 'if-modified-since', ''],
  ...['if-none-match', '', 'if-range', '', 'if-unmodified-since', '', 'last-modified', '', 'link', ''],
  ...['location', '', 'max-forwards', '', 'proxy-authenticate', '', 'proxy-authorization', '', 'range', ''],
  ...['referer', '', 'refresh', '', 'retry-after', '', 'server', '', 'set-cookie', ''],
  ...['strict-transport-security', '', 'transfer-encoding', '', 'user-agent', '', 'vary', '', 'via', ''],
  ...['www-authenticate', ''],
]

/** How many entries it has. The indexes of the dynamic table begin after them. */
export const STATIC_ENTRIES = staticTable.length / 2

/** Bytes that an entry takes in addition to its name and value (section 4.1). The size of a list of fields counts them, too. */
export const ENTRY_OVERHEAD = 32
