import { afterAll, beforeAll } from 'vitest'
import { authorityFile, tlsSettings } from '../support/network/certificates.ts'
import { startGateway, type GatewayProcess } from '../support/gateway/gateway.ts'
import { expectAtRest, type Expected } from './rest.ts'

/** An application under test, which listens on 127.0.0.1. */
export type App = {
  readonly port: number
  /** A path that returns 200 to a plain GET. */
  readonly probe: string
}

/** How a client reaches the application. */
export type Way = {
  readonly name: string
  readonly protocol: 'http' | 'https' | 'http2'
  /** Such as `https://127.0.0.1:8080`. Known once the tests run. */
  readonly origin: string
  /** The admin port of the gateway on the way, if there is a gateway. Known even before the tests run. */
  readonly adminPort?: number
}

export type Stage = {
  /** The way to the application itself, over HTTP/1.1. */
  readonly direct: Way
  /** The ways through a gateway. */
  readonly ways: readonly Way[]
}

type GatewayKind = { readonly tls: boolean; readonly workers: number }

const kinds = {
  plain: { tls: false, workers: 1 },
  plainWorkers: { tls: false, workers: 2 },
  tls: { tls: true, workers: 1 },
  tlsWorkers: { tls: true, workers: 2 },
} satisfies Record<string, GatewayKind>

/**
 * Registers the start of the application and of its gateways before the file's tests. After the tests each gateway must be at rest, see
 * `expectAtRest`.
 */
export function setStage(options: {
  readonly start: () => Promise<App>
  /** Whether the client, or one of several, speaks HTTP/2: if so, each HTTP/1.1 way gets an HTTP/2 way beside it. */
  readonly http2: boolean | 'one of several'
  /** Path of the `sluice.yaml`. By default every request is counted and none is refused. */
  readonly config?: string
  readonly expected?: Expected
}): Stage {
  const gateways = new Map<GatewayKind, GatewayProcess>()
  let app: App | undefined

  beforeAll(async () => {
    app = await options.start()
    const upstream = `http://127.0.0.1:${app.port}`
    await Promise.all(
      Object.values(kinds).map(async (kind) =>
        gateways.set(
          kind,
          await startWith(kind, upstream, options.config ?? 'test/apps/limits/everything.yaml'),
        ),
      ),
    )
    // Building the application may come first.
  }, 300_000)

  afterAll(async () => {
    for (const [kind, gateway] of gateways) {
      const { probe } = started(app)
      await expectAtRest(gateway, { tls: kind.tls, probe, expected: options.expected ?? {} })
    }
  })

  const way = (name: string, protocol: Way['protocol'], kind: GatewayKind): Way => ({
    name,
    protocol,
    get origin() {
      return `${kind.tls ? 'https' : 'http'}://127.0.0.1:${started(gateways.get(kind)).port}`
    },
    get adminPort() {
      return started(gateways.get(kind)).adminPort
    },
  })
  return {
    direct: {
      name: 'direct',
      protocol: 'http',
      get origin() {
        return `http://127.0.0.1:${started(app).port}`
      },
    },
    ways: [
      way('http', 'http', kinds.plain),
      way('http, two workers', 'http', kinds.plainWorkers),
      way('https', 'https', kinds.tls),
      ...(options.http2 === true ? [] : [way('https, two workers', 'https', kinds.tlsWorkers)]),
      ...(options.http2 === false
        ? []
        : [way('HTTP/2', 'http2', kinds.tls), way('HTTP/2, two workers', 'http2', kinds.tlsWorkers)]),
    ],
  }
}

/** Variables that make clients on OpenSSL, Node and git trust the gateways' certificate. */
export const trustingEnvironment = {
  NODE_EXTRA_CA_CERTS: authorityFile,
  SSL_CERT_FILE: authorityFile,
  GIT_SSL_CAINFO: authorityFile,
}

function startWith(kind: GatewayKind, upstream: string, config: string): Promise<GatewayProcess> {
  const settings = {
    UPSTREAM_URL: upstream,
    CONFIG_FILE: config,
    WORKERS: String(kind.workers),
    // With few open files available, the gateway warns that the default needs more.
    MAX_CONNECTIONS: '1000',
    // The primary process may be slow to decide, because these tests are not about a busy machine.
    STORE_TIMEOUT: '10s',
    // On a busy machine a client may send its request long after the handshake.
    HEADERS_TIMEOUT: '60s',
    ...(kind.tls && tlsSettings()),
  }
  return startGateway(settings)
}

function started<Value>(value: Value | undefined): Value {
  if (value === undefined) throw new Error('the application or its gateway has not been started')
  return value
}
