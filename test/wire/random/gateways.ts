import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { tlsSettings } from '../../support/network/certificates.ts'
import { DEVICE_SECRET, MAX_SIGN_IN_BYTES, tableOfEveryKind } from '../../support/gateway/every-kind.ts'
import { spawnNode, type NodeProcess } from '../../support/gateway/process.ts'
import { makeTemporaryDirectory } from '../../support/run/temporary-directory.ts'
import { limitedQuota, type GatewayBounds } from './plan.ts'

/** A gateway in front of the driver's backend. */
export type DrivenGateway = {
  readonly bounds: GatewayBounds
  readonly port: number
  readonly adminPort: number
  readonly process: NodeProcess
}

const unbounded = { maxBodyBytes: 0, maxPutBytes: 0, isImpatient: false }
const bounded = { ...unbounded, maxBodyBytes: 65_536 }
/** Rules of every kind count the requests, too. */
const everyKind = { ...unbounded, maxPutBytes: MAX_SIGN_IN_BYTES }
const impatient = { ...unbounded, isImpatient: true }

type Profile = {
  readonly bounds: GatewayBounds
  readonly upstreamConnections: number
}

/**
 * Roomy, with enough connections for all requests; tight, where most requests wait for a connection and some are over a limit; impatient,
 * for backends that hang.
 */
export const profiles = {
  'http, roomy': { bounds: { https: false, ...everyKind }, upstreamConnections: 64 },
  'https, roomy': { bounds: { https: true, ...everyKind }, upstreamConnections: 64 },
  'http, tight': { bounds: { https: false, ...bounded }, upstreamConnections: 6 },
  'https, tight': { bounds: { https: true, ...bounded }, upstreamConnections: 6 },
  'http, impatient': { bounds: { https: false, ...impatient }, upstreamConnections: 64 },
  'https, impatient': { bounds: { https: true, ...impatient }, upstreamConnections: 64 },
} satisfies Record<string, Profile>

export type ProfileName = keyof typeof profiles

/** @param root the root of the source to run: this repository, or a changed copy of it */
export async function startDrivenGateway(
  name: ProfileName,
  upstreamUrl: string,
  root: string,
): Promise<DrivenGateway> {
  const { upstreamConnections, bounds }: Profile = profiles[name]
  // Unless the gateway is impatient, longer than a busy machine may stall.
  const upstreamTimeout = bounds.isImpatient ? '2s' : '30s'
  const config = join(makeTemporaryDirectory(), 'sluice.yaml')
  const rule = `{ name: few, match: '* /limited/*', requests: ${limitedQuota}, window: 1h }`
  writeFileSync(config, bounds.maxPutBytes > 0 ? tableOfEveryKind([rule]) : `limits:\n  - ${rule}\n`)
  const gateway = spawnNode(join(root, 'proxy/main.ts'), {
    HOST: '127.0.0.1',
    PORT: '0',
    ADMIN_PORT: '0',
    CONFIG_FILE: config,
    DEVICE_SECRET,
    UPSTREAM_URL: upstreamUrl,
    UPSTREAM_CONNECTIONS: String(upstreamConnections),
    UPSTREAM_QUEUE: '4096',
    UPSTREAM_CONNECT_TIMEOUT: '60s',
    UPSTREAM_TIMEOUT: upstreamTimeout,
    UPSTREAM_IDLE_TIMEOUT: upstreamTimeout,
    MAX_BODY_SIZE: String(bounds.maxBodyBytes),
    ...(bounds.https && tlsSettings()),
  })
  const [line] = await gateway.waitForLine(/^.*"msg":"listening".*$/)
  const { port, adminPort } = JSON.parse(line) as { port: number; adminPort: number }
  return { bounds, port, adminPort, process: gateway }
}
