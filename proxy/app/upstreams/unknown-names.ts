import { lookup } from 'node:dns'
import type { Log } from '../../../shared/log.ts'
import type { GatewaySettings } from '../../config/settings.ts'
import { hostNameOf } from '../../upstream/servers/addresses.ts'

/** So many names at a time: lookups have four threads, which files and other lookups share. */
const AT_A_TIME = 2

/**
 * Warns where the host name of a backend does not resolve: a mistake in it would show with the first request only. It may also
 * be that the backend is yet to be started, so nothing waits for this and nothing depends on it.
 */
export function warnOfUnknownUpstreams(
  { upstreamUrl, routes, hasFallback }: Pick<GatewaySettings, 'upstreamUrl' | 'routes' | 'hasFallback'>,
  log: Log,
): void {
  const placed = [
    ...(routes && !hasFallback ? [] : [{ url: upstreamUrl, where: 'UPSTREAM_URL' }]),
    ...(routes ?? []).flatMap(({ name, upstream }) =>
      upstream.map((url) => ({ url: new URL(url), where: `route ${name}` })),
    ),
  ]
  const places = new Map<string, string>()
  for (const { url, where } of placed) {
    const name = hostNameOf(url)
    if (name !== undefined && !places.has(name)) places.set(name, where)
  }
  const left = places.entries()
  const next = (): void => {
    const { value } = left.next()
    if (!value) return
    const [hostname, where] = value
    lookup(hostname, (error) => {
      if (error) {
        const about = { hostname, reason: error.code }
        log.warn(about, `the host name in ${where} does not resolve: requests get 502 until it does`)
      }
      next()
    })
  }
  for (let i = 0; i < AT_A_TIME; i++) next()
}
