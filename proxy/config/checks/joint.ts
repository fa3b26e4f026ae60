import { problemAt, showValue, type Problem } from '../../../shared/settings/problems.ts'
import type { ReadSettings } from '../../../shared/settings/settings.ts'
import type { gatewayTable } from '../settings-table.ts'
import { checkTlsPair, checkUpstreamAuthorities, type FolderOf } from './certificates.ts'
import { checkUpstream, isEveryAddress, isLocal } from './own-address.ts'
import { checkRedis } from './redis.ts'

type Read = ReadSettings<typeof gatewayTable>

/** Finds problems of settings in combination. A setting that is wrong by itself is skipped. */
export function checkJointly(read: Read, folderOf: FolderOf): Problem[] {
  return [
    ...checkAdminToken(read),
    ...checkPorts(read),
    ...checkDecisionsPort(read),
    ...checkUpstream(read),
    ...checkProxyProtocol(read),
    ...checkClientAddressHeader(read),
    ...checkTlsPair(read, folderOf),
    ...checkUpstreamAuthorities(read, folderOf),
    ...checkRedis(read, folderOf),
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

function checkDecisionsPort({ values, placeOf }: Read): Problem[] {
  const { decisionsPort, port, adminPort, trustedProxies } = values
  if (decisionsPort === undefined) return []
  const problems: Problem[] = []
  if (decisionsPort !== 0 && (decisionsPort === port || decisionsPort === adminPort)) {
    const text = `got ${decisionsPort}, needs a different port than PORT and ADMIN_PORT`
    problems.push(problemAt(placeOf('decisionsPort'), text))
  }
  if (trustedProxies?.length === 0) {
    const text = 'missing, required with DECISIONS_PORT: the proxies that may ask'
    problems.push(problemAt(placeOf('trustedProxies'), text))
  }
  return problems
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

/** The header is believed from trusted proxies only. Without any, all clients of the proxy would share one limit. */
function checkClientAddressHeader({ values, placeOf }: Read): Problem[] {
  const { clientAddressHeader, trustedProxies } = values
  if (clientAddressHeader === undefined || clientAddressHeader === 'x-forwarded-for') return []
  if (trustedProxies?.length !== 0) return []
  const { label } = placeOf('clientAddressHeader')
  return [problemAt(placeOf('trustedProxies'), `missing, required with ${label}: the proxies that send it`)]
}
