import { X509Certificate } from 'node:crypto'
import { createServer, type AddressInfo, type ListenOptions, type Server } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import type { Log } from '../../../shared/log.ts'
import { nameListenSetting, type ListenSettings } from '../../../shared/start-error.ts'
import type { GatewaySettings } from '../../config/settings.ts'
import type { Http1Limits } from '../../http/connection/http1/connections.ts'
import type { Http2Limits } from '../../http/connection/http2/connections.ts'
import { chooseProtocol } from '../../http/connection/tls/alpn.ts'
import { offeredTls } from '../../http/connection/tls/ciphers.ts'
import type { CertificatePair } from '../../http/connection/tls/certificate-pair.ts'
import { watchCertificate, type CertificateWatch } from '../../http/connection/tls/reload.ts'
import type { Telemetry } from '../../telemetry/telemetry.ts'

/** The server that clients connect to. It has no handlers yet. */
export type ClientServer = {
  readonly server: Server
  /** Reloads changed certificate files; undefined without HTTPS. */
  readonly certificate: CertificateWatch | undefined
}

/** Half-open connections are allowed, because a client that has ended its direction may still wait for a response. */
const ofConnections = { allowHalfOpen: true, noDelay: true }

type ServerOptions = {
  /** The result of `readCertificate`. */
  readonly pair: CertificatePair | undefined
  readonly warnsOfCertificate: boolean
  readonly telemetry: Pick<Telemetry, 'certificateUsed'>
  readonly log: Log
}

/** Creates the server: HTTP/1.1, and HTTP/2 by prior knowledge; or, with a certificate, HTTPS with HTTP/1.1 and HTTP/2 by ALPN. */
export function createClientServer(
  settings: GatewaySettings,
  { pair, warnsOfCertificate, telemetry, log }: ServerOptions,
): ClientServer {
  const { tlsCertFile, tlsKeyFile } = settings
  if (tlsCertFile === undefined || tlsKeyFile === undefined || !pair)
    return { server: createPlainServer(), certificate: undefined }

  const server = createTlsServer({
    ...ofConnections,
    handshakeTimeout: settings.headersTimeoutMs,
    ...offeredTls,
    ...pair,
    ALPNCallback: chooseProtocol,
  })
  const report = (cert: Buffer): void =>
    telemetry.certificateUsed(new X509Certificate(cert).validToDate.getTime())
  report(pair.cert)
  const certificate = watchCertificate({
    certFile: tlsCertFile,
    keyFile: tlsKeyFile,
    inUse: pair,
    use: (next) => {
      server.setSecureContext({ ...offeredTls, ...next })
      report(next.cert)
    },
    warnsOfValidity: warnsOfCertificate,
    log,
  })
  return { server, certificate }
}

/** Creates a server without TLS and without handlers. */
export function createPlainServer(): Server {
  return createServer(ofConnections)
}

/** Returns the bounds of an HTTP/1 connection under these settings. */
export function http1Limits({
  maxHeaderBytes,
  maxHeaderCount,
  headersTimeoutMs,
  idleTimeoutMs,
}: Pick<
  GatewaySettings,
  'maxHeaderBytes' | 'maxHeaderCount' | 'headersTimeoutMs' | 'idleTimeoutMs'
>): Http1Limits {
  return {
    headLimits: { maxBytes: maxHeaderBytes, maxFields: maxHeaderCount },
    headersMs: headersTimeoutMs,
    idleMs: idleTimeoutMs,
  }
}

/** Returns the bounds of an HTTP/2 connection under these settings. */
export function http2Limits(settings: GatewaySettings): Http2Limits {
  return {
    maxHeaderBytes: settings.maxHeaderBytes,
    maxStreams: settings.maxStreams,
    sendMs: settings.sendTimeoutMs,
    idleMs: settings.idleTimeoutMs,
    headersMs: settings.headersTimeoutMs,
  }
}

/**
 * Listens on an address. If that fails, rejects with an error that names the setting to change, or with the system's error.
 *
 * @param settings the variables that set the address
 */
export function listenOn(
  server: Server,
  options: ListenOptions,
  settings: ListenSettings,
): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    const fail = (error: Error): void => reject(nameListenSetting(error, settings, options.host))
    server.once('error', fail)
    server.listen(options, () => {
      server.off('error', fail)
      resolve(server.address() as AddressInfo)
    })
  })
}
