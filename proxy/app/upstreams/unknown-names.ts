import type { Log } from '../../../shared/log.ts'
import type { GatewaySettings } from '../../config/settings.ts'
import type { Names } from '../../names/names.ts'
import { hostNameOf } from '../../http/upstream/servers/addresses.ts'

/**
 * Warns if the host name of a backend does not resolve. Otherwise, a mistake in it would only show with the first request. The backend may
 * not be started yet, so nothing waits for the result or depends on it.
 */
export function warnOfUnknownUpstreams(
  { upstreamUrl, routes, hasFallback }: Pick<GatewaySettings, 'upstreamUrl' | 'routes' | 'hasFallback'>,
  { names, log }: { readonly names: Names; readonly log: Log },
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
  for (const [hostname, where] of places) {
    names.resolve(hostname).catch((error: unknown) => {
      const about = { hostname, reason: codeOf(error) }
      log.warn(about, `the host name in ${where} does not resolve: requests get 502 until it does`)
    })
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : String(error)
}
