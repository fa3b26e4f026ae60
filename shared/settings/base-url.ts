/** The scheme of a server that listens, `http` if left out, and its address. */
export type Listener = {
  readonly scheme?: 'http' | 'https'
  readonly host: string | undefined
  readonly port: number
}

/** The host at which a server that listens on this host is reached from this machine. One that listens on all, on the loopback. */
export function reachedHost(host: string | undefined): string {
  if (host === undefined || host === '0.0.0.0') return '127.0.0.1'
  return host === '::' ? '::1' : host
}

/** The base URL of a server, for somebody on this machine, without a final slash. */
export function baseUrlOf({ scheme = 'http', host, port }: Listener): string {
  const reached = reachedHost(host)
  return `${scheme}://${reached.includes(':') ? `[${reached}]` : reached}:${port}`
}
