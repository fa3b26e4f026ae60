import { problemAt, showValue, type PlaceOf, type Problem } from '../../../shared/settings/problems.ts'
import type { ReadSettings } from '../../../shared/settings/settings.ts'
import { isLoopback } from '../../request/addresses/address-ranges.ts'
import type { CrowdsecSettings } from '../../limits/clients/crowdsec/local-api.ts'
import type { UpstreamRoute } from '../../limits/rules/upstream-routes.ts'
import type { gatewayTable } from '../settings-table.ts'

type Read = ReadSettings<typeof gatewayTable>

/** Finds a backend that is the gateway itself, which would forward to itself until it has no connection left. */
export function checkUpstream(read: Read): Problem[] {
  const { upstreamUrl } = read.values
  if (!upstreamUrl || !isOwnAddress(read, upstreamUrl)) return []
  return [problemAt(read.placeOf('upstreamUrl'), needsBackend(upstreamUrl))]
}

/** Does what `checkUpstream` does, for the backends of routes. */
export function findOwnAddresses(
  routes: readonly Pick<UpstreamRoute, 'upstream'>[] | undefined,
  read: Read,
  placeOf: PlaceOf,
): Problem[] {
  return [...(routes ?? []).entries()].flatMap(([index, { upstream }]) => {
    const own = upstream.map((url) => new URL(url)).find((url) => isOwnAddress(read, url))
    return own ? [problemAt(placeOf(['routes', index, 'upstream']), needsBackend(own))] : []
  })
}

/** Finds a CrowdSec that is the gateway itself: both have the port 8080 by default, and the backend would get the key of the bouncer. */
export function checkCrowdsecAddress(
  crowdsec: CrowdsecSettings | undefined,
  read: Read,
  placeOf: PlaceOf,
): Problem[] {
  if (!crowdsec || !isOwnAddress(read, new URL(crowdsec.url))) return []
  const needs =
    "needs the address of CrowdSec's local API, not the gateway's own: give one of them another port"
  return [problemAt(placeOf(['crowdsec', 'url']), `got ${showValue(crowdsec.url)}, ${needs}`)]
}

function needsBackend({ href }: URL): string {
  return `got ${showValue(href)}, needs the backend's address, not the gateway's own`
}

function isOwnAddress({ values }: Read, url: URL): boolean {
  const { host, port } = values
  if (!('host' in values) || !isLocal(url.hostname.replace(/^\[|\]$/g, ''))) return false
  const urlPort = Number(url.port || (url.protocol === 'https:' ? 443 : 80))
  return urlPort === port && (isEveryAddress(host) || isLocal(host ?? ''))
}

/** Whether a listener with this `HOST` accepts connections on all addresses of the machine. */
export function isEveryAddress(host: string | undefined): boolean {
  return host === undefined || host === '0.0.0.0' || host === '::'
}

/** Whether only this machine can reach the host: `localhost`, or a loopback address. */
export function isLocal(host: string): boolean {
  return host.toLowerCase() === 'localhost' || isLoopback(host)
}
