import { lookup } from 'node:dns'
import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import type { Log } from '../../shared/log.ts'
import type { GatewaySettings } from '../config/settings.ts'
import type { Telemetry } from '../telemetry/telemetry.ts'
import { connectionOpener } from '../upstream/open-connection.ts'
import { UpstreamPool } from '../upstream/pool.ts'

/** The connections to the backend. */
export function composePool(
  settings: GatewaySettings,
  telemetry: Telemetry,
  now: () => number,
): UpstreamPool {
  const { upstreamUrl, upstreamCaFile, upstreamConnections, upstreamQueue } = settings
  const authorities = upstreamCaFile === undefined ? undefined : readFileSync(upstreamCaFile)
  const pool = new UpstreamPool({
    open: connectionOpener(upstreamUrl, authorities),
    connectMs: settings.upstreamConnectTimeoutMs,
    firstByteMs: settings.upstreamTimeoutMs,
    idleMs: settings.upstreamIdleTimeoutMs,
    bareLf: settings.upstreamBareLf,
    maxConnections: upstreamConnections,
    maxStreams: settings.upstreamStreams,
    maxQueued: upstreamQueue,
    queueMs: settings.upstreamQueueTimeoutMs,
    maxAgeMs: settings.upstreamMaxAgeMs,
    maxRequests: settings.upstreamMaxRequests,
    now,
    random: Math.random,
  })
  const observe = (name: string, capacity: number, size: () => number): void =>
    telemetry.observeTable(name, () => ({ size: size(), capacity, evictions: 0 }))
  observe('upstream-connections', upstreamConnections, () => pool.size)
  observe('upstream-streams', settings.upstreamStreams, () => pool.streams)
  observe('upstream-queue', upstreamQueue, () => pool.queued)
  observe('upload-queue', upstreamQueue, () => pool.queuedUploads)
  return pool
}

/**
 * Warns where the backend's host name does not resolve: a mistake in it would show with the first request only. It may also
 * be that the backend is yet to be started, so nothing waits for this and nothing depends on it.
 */
export function warnOfUnknownUpstream({ hostname }: URL, log: Log): void {
  if (isIP(hostname.replace(/^\[|\]$/g, '')) > 0) return
  lookup(hostname, (error) => {
    if (error) {
      const about = { hostname, reason: error.code }
      log.warn(about, 'the host name in UPSTREAM_URL does not resolve: requests get 502 until it does')
    }
  })
}
