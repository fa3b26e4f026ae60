import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { BlockList, isIP } from 'node:net'
import { resolve } from 'node:path'
import { createSecureContext } from 'node:tls'
import type { ReadSettings } from '../../shared/settings.ts'
import { problemAt, reasonOf, showValue, type Problem } from '../../shared/settings-problems.ts'
import type { gatewayTable } from './settings-table.ts'

type Read = ReadSettings<typeof gatewayTable>

/** Finds what is wrong with settings only together with others. A setting that is wrong by itself is passed over. */
export function checkJointly(read: Read, cwd: string): Problem[] {
  return [
    ...checkAdminToken(read),
    ...checkPorts(read),
    ...checkUpstream(read),
    ...checkProxyProtocol(read),
    ...checkTls(read, cwd),
    ...checkAuthorities(read, cwd),
  ]
}

/** What can be reached from other machines needs a token. */
function checkAdminToken({ values, placeOf }: Read): Problem[] {
  const { adminHost } = values
  const hasNoToken = 'adminToken' in values && values.adminToken === undefined
  if (!hasNoToken || adminHost === undefined || isLoopback(adminHost)) return []
  const text = `missing, needs a value where the admin host is not loopback (it is ${showValue(adminHost)})`
  return [problemAt(placeOf('adminToken'), text)]
}

function checkPorts({ values, placeOf }: Read): Problem[] {
  const { host, port, adminHost, adminPort } = values
  if (!('host' in values) || port !== adminPort || port === undefined || port === 0) return []
  if (!isEveryAddress(host) && !isEveryAddress(adminHost) && host !== adminHost) return []
  return [problemAt(placeOf('adminPort'), `got ${port}, needs another port than the clients'`)]
}

/** A gateway before itself forwards a request until it has no connection left. */
function checkUpstream({ values, placeOf }: Read): Problem[] {
  const { host, port, upstreamUrl } = values
  if (!('host' in values) || !upstreamUrl || !isLoopback(upstreamUrl.hostname.replace(/^\[|\]$/g, '')))
    return []
  const upstreamPort = Number(upstreamUrl.port || { 'http:': 80, 'https:': 443 }[upstreamUrl.protocol])
  if (upstreamPort !== port || !(isEveryAddress(host) || isLoopback(host ?? ''))) return []
  const text = `got ${showValue(upstreamUrl.href)}, needs the backend's address, not the gateway's own`
  return [problemAt(placeOf('upstreamUrl'), text)]
}

/** The header is believed from trusted proxies only. */
function checkProxyProtocol({ values, placeOf }: Read): Problem[] {
  const { proxyProtocol, trustedProxies } = values
  if (!proxyProtocol || trustedProxies?.length !== 0) return []
  return [problemAt(placeOf('trustedProxies'), 'missing, needs a value where the PROXY protocol is on')]
}

function isEveryAddress(host: string | undefined): boolean {
  return host === undefined || host === '0.0.0.0' || host === '::'
}

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8)
loopback.addAddress('::1', 'ipv6')

function isLoopback(host: string): boolean {
  const version = isIP(host)
  if (version === 0) return host.toLowerCase() === 'localhost'
  return loopback.check(host, version === 6 ? 'ipv6' : 'ipv4')
}

/** Tries certificate and key as the server is going to use them. */
function checkTls({ values, placeOf }: Read, cwd: string): Problem[] {
  const { tlsCertFile, tlsKeyFile } = values
  if (!('tlsCertFile' in values && 'tlsKeyFile' in values)) return []
  if (tlsCertFile === undefined && tlsKeyFile === undefined) return []
  if (tlsCertFile === undefined)
    return [problemAt(placeOf('tlsCertFile'), 'missing, needs a file beside the TLS key')]
  if (tlsKeyFile === undefined) {
    return [problemAt(placeOf('tlsKeyFile'), 'missing, needs a file beside the TLS certificate')]
  }
  const readCert = () => readFileSync(resolve(cwd, tlsCertFile))
  const readKey = () => readFileSync(resolve(cwd, tlsKeyFile))
  const problems: Problem[] = []
  const certError = errorOf(() => createSecureContext({ cert: readCert() }))
  if (certError !== undefined) {
    const text = `got ${showValue(tlsCertFile)}, needs a readable PEM certificate (${certError})`
    problems.push(problemAt(placeOf('tlsCertFile'), text))
  }
  const keyError = errorOf(() => createSecureContext({ key: readKey() }))
  if (keyError !== undefined) {
    const text = `got ${showValue(tlsKeyFile)}, needs a readable PEM key without passphrase (${keyError})`
    problems.push(problemAt(placeOf('tlsKeyFile'), text))
  }
  if (problems.length === 0 && errorOf(() => createSecureContext({ cert: readCert(), key: readKey() }))) {
    const text = `got ${showValue(tlsKeyFile)}, needs the key of the certificate in ${showValue(tlsCertFile)}`
    problems.push(problemAt(placeOf('tlsKeyFile'), text))
  }
  return problems
}

function checkAuthorities({ values, placeOf }: Read, cwd: string): Problem[] {
  const { upstreamCaFile } = values
  if (upstreamCaFile === undefined) return []
  const error = errorOf(() => new X509Certificate(readFileSync(resolve(cwd, upstreamCaFile))))
  if (error === undefined) return []
  const text = `got ${showValue(upstreamCaFile)}, needs a readable PEM certificate (${error})`
  return [problemAt(placeOf('upstreamCaFile'), text)]
}

function errorOf(use: () => unknown): string | undefined {
  try {
    use()
    return undefined
  } catch (error) {
    return reasonOf(error)
  }
}
