/** The scheme of a listening server (`http` if left out) and its address. */
export type Listener = {
  readonly scheme?: 'http' | 'https'
  readonly host: string | undefined
  readonly port: number
}

/** The host at which this machine reaches a server that listens on `host`: the loopback address if the server listens on all interfaces. */
export function reachedHost(host: string | undefined): string {
  if (host === undefined || host === '0.0.0.0') return '127.0.0.1'
  return host === '::' ? '::1' : host
}

/** The base URL of a server for clients on this machine, without a final slash. */
export function baseUrlOf({ scheme = 'http', host, port }: Listener): string {
  const reached = reachedHost(host)
  return `${scheme}://${reached.includes(':') ? `[${reached}]` : reached}:${port}`
}
