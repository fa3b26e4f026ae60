import { readFileSync } from 'node:fs'
import { createServer, type Server, type ServerOptions } from 'node:http'
import {
  createServer as createHttp2Server,
  createSecureServer,
  type Http2SecureServer,
  type Http2Server,
} from 'node:http2'
import type { AddressInfo, ListenOptions, Server as NetServer } from 'node:net'
import type { Log } from '../../shared/log.ts'
import { nameHostSetting } from '../../shared/start-error.ts'
import type { GatewaySettings } from '../config/settings.ts'
import { chooseProtocol, serveHttp10 } from '../connection/tls/alpn.ts'
import { cipherList } from '../connection/tls/ciphers.ts'
import { watchCertificate, type CertificateWatch } from '../connection/tls/reload.ts'
import { takesUpgrade } from '../server/listener.ts'

/** The server that clients connect to. It has no handlers yet. */
export type ClientServer = {
  readonly server: Server | Http2SecureServer
  /** Without TLS: serves the connections on which the client sends the preface of HTTP/2. It does not listen itself. */
  readonly cleartextHttp2: Http2Server | undefined
  /** Of HTTPS: what follows the files. */
  readonly certificate: CertificateWatch | undefined
}

/** HTTP/1.1, and HTTP/2 by prior knowledge; or with a certificate HTTPS with HTTP/1.1 and HTTP/2 by ALPN. */
export function createClientServer(settings: GatewaySettings, log: Log): ClientServer {
  const { tlsCertFile, tlsKeyFile, tlsMinVersion, tlsCiphers } = settings
  const options = http1Options(settings)
  if (tlsCertFile === undefined || tlsKeyFile === undefined)
    return {
      server: adjust(createServer(options)),
      cleartextHttp2: createHttp2Server(http2Options(settings)),
      certificate: undefined,
    }

  const tls = { minVersion: tlsMinVersion, ciphers: cipherList(tlsCiphers) }
  const pair = { cert: readFileSync(tlsCertFile), key: readFileSync(tlsKeyFile) }
  const server = createSecureServer({
    ...options,
    ...http2Options(settings),
    allowHTTP1: true,
    handshakeTimeout: settings.headersTimeoutMs,
    ...tls,
    ...pair,
    ALPNCallback: chooseProtocol,
  })
  serveHttp10(server)
  const certificate = watchCertificate({
    certFile: tlsCertFile,
    keyFile: tlsKeyFile,
    inUse: pair,
    use: (next) => server.setSecureContext({ ...tls, ...next }),
    log,
  })
  return { server: adjust(server), cleartextHttp2: undefined, certificate }
}

/** Nothing lenient: what Node's strict parser refuses never reaches the steps. */
export function http1Options({
  maxHeaderBytes,
  headersTimeoutMs,
  idleTimeoutMs,
}: Pick<GatewaySettings, 'maxHeaderBytes' | 'headersTimeoutMs' | 'idleTimeoutMs'>): ServerOptions {
  return {
    insecureHTTPParser: false,
    maxHeaderSize: maxHeaderBytes,
    headersTimeout: headersTimeoutMs,
    // An upload may take as long as it goes on.
    requestTimeout: 0,
    // Often, so that few come due together.
    connectionsCheckingInterval: Math.min(50, headersTimeoutMs / 4),
    keepAliveTimeout: idleTimeoutMs,
    noDelay: true,
    // Missing and wrong `Host` fields are answered by the handler, in the one error shape.
    requireHostHeader: false,
    // All lines of a field count, where clients are told apart by it, and all are passed on.
    joinDuplicateHeaders: true,
    optimizeEmptyRequests: true,
  }
}

function http2Options({ maxHeaderBytes, maxHeaderCount, maxStreams }: GatewaySettings) {
  return {
    settings: { maxConcurrentStreams: maxStreams, maxHeaderListSize: maxHeaderBytes },
    // Cookies may come in pieces. What is over this is reset, what is over the count alone is answered.
    maxHeaderListPairs: 2 * maxHeaderCount + 100,
    // What a backend repeats is passed on.
    strictSingleValueFields: false,
    // MiB a connection may make this process hold.
    maxSessionMemory: 10,
    // Node's default is 1,000. Nothing well-meaning sends even one.
    maxSessionInvalidFrames: 100,
  }
}

function adjust<Kind extends Server | Http2SecureServer>(server: Kind): Kind {
  return Object.assign(server, {
    // No limit here: fields beyond it would be left out without a word. The handler counts.
    maxHeadersCount: 0,
    // Set here because a server of HTTP/2 does not take it as an option.
    shouldUpgradeCallback: takesUpgrade,
  })
}

/**
 * Rejects where the address cannot be had: with the system's error, or one that names the setting where it is the host.
 *
 * @param hostSetting the variable that sets the host
 */
export function listenOn(
  server: NetServer,
  options: ListenOptions,
  hostSetting: string,
): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    const fail = (error: Error): void => reject(nameHostSetting(error, hostSetting, options.host))
    server.once('error', fail)
    server.listen(options, () => {
      server.off('error', fail)
      resolve(server.address() as AddressInfo)
    })
  })
}
