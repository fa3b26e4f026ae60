import { problemAt, showValue, type Problem } from '../../../shared/settings/problems.ts'
import type { ReadSettings } from '../../../shared/settings/settings.ts'
import { isLoopback } from '../../request/addresses/address-ranges.ts'
import type { gatewayTable } from '../settings-table.ts'
import { checkAuthorities, checkPair } from './certificates.ts'
import { checkCiphers } from './ciphers.ts'
import { checkRedis } from './redis.ts'

type Read = ReadSettings<typeof gatewayTable>

/** Finds problems of settings in combination. A setting that is wrong by itself is skipped. */
export function checkJointly(read: Read, cwd: string): Problem[] {
  return [
    ...checkAdminToken(read),
    ...checkPorts(read),
    ...checkUpstream(read),
    ...checkProxyProtocol(read),
    ...checkClientAddressHeader(read),
    ...checkPair(read, { cert: 'tlsCertFile', key: 'tlsKeyFile' }, cwd),
    ...checkCiphers(read),
    ...checkAuthorities(read, 'upstreamCaFile', cwd),
    ...checkRedis(read, cwd),
  ]
}

/** An admin listener that other machines can reach needs a token. */
function checkAdminToken({ values, placeOf }: Read): Problem[] {
  const { adminHost } = values
  const hasNoToken = 'adminToken' in values && values.adminToken === undefined
  if (!hasNoToken || adminHost === undefined || isLocal(adminHost)) return []
  const text = `missing, required because the admin host is not a loopback address (it is ${showValue(adminHost)})`
  return [problemAt(placeOf('adminToken'), text)]
}

function checkPorts({ values, placeOf }: Read): Problem[] {
  const { host, port, adminHost, adminPort } = values
  if (!('host' in values) || port !== adminPort || port === undefined || port === 0) return []
  if (!isEveryAddress(host) && !isEveryAddress(adminHost) && host !== adminHost) return []
  return [
    problemAt(placeOf('adminPort'), `got ${port}, needs a different port than the one for clients (PORT)`),
  ]
}

/** A gateway that forwards to itself does so until it has no connection left. */
function checkUpstream({ values, placeOf }: Read): Problem[] {
  const { host, port, upstreamUrl } = values
  if (!('host' in values) || !upstreamUrl || !isLocal(upstreamUrl.hostname.replace(/^\[|\]$/g, ''))) return []
  const upstreamPort = Number(upstreamUrl.port || { 'http:': 80, 'https:': 443 }[upstreamUrl.protocol])
  if (upstreamPort !== port || !(isEveryAddress(host) || isLocal(host ?? ''))) return []
  const text = `got ${showValue(upstreamUrl.href)}, needs the backend's address, not the gateway's own`
  return [problemAt(placeOf('upstreamUrl'), text)]
}

/** The PROXY header is accepted from trusted proxies only. */
function checkProxyProtocol({ values, placeOf }: Read): Problem[] {
  const { proxyProtocol, trustedProxies } = values
  if (!proxyProtocol || trustedProxies?.length !== 0) return []
  return [
    problemAt(
      placeOf('trustedProxies'),
      'missing, required with the PROXY protocol: the proxies that send it',
    ),
  ]
}

/** Nobody is believed without it, so that every client of the proxy would share one limit. */
function checkClientAddressHeader({ values, placeOf }: Read): Problem[] {
  const { clientAddressHeader, trustedProxies } = values
  if (clientAddressHeader === undefined || clientAddressHeader === 'x-forwarded-for') return []
  if (trustedProxies?.length !== 0) return []
  const { label } = placeOf('clientAddressHeader')
  return [problemAt(placeOf('trustedProxies'), `missing, required with ${label}: the proxies that send it`)]
}

function isEveryAddress(host: string | undefined): boolean {
  return host === undefined || host === '0.0.0.0' || host === '::'
}

function isLocal(host: string): boolean {
  return host.toLowerCase() === 'localhost' || isLoopback(host)
}
