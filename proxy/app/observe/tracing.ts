import type { Log } from '../../../shared/log.ts'
import type { GatewaySettings } from '../../config/settings.ts'
import type { Telemetry } from '../../telemetry/telemetry.ts'
import type { Tracing } from '../../telemetry/tracing/tracing.ts'
import { version } from './version.ts'

/** Composes tracing; undefined without a collector, or if tracing is turned off. In this case, no OpenTelemetry code is loaded. */
export async function composeTracing(
  settings: GatewaySettings,
  telemetry: Telemetry,
  log: Log,
): Promise<Tracing | undefined> {
  const { otelExporterOtlpEndpoint: base, otelExporterOtlpTracesEndpoint, upstreamUrl } = settings
  const url = otelExporterOtlpTracesEndpoint ?? (base && `${base}/v1/traces`)
  if (url === undefined || settings.otelSdkDisabled || settings.otelTracesExporter === 'none')
    return undefined
  const { createTracing } = await import('../../telemetry/tracing/opentelemetry.ts')
  const tracing = createTracing({
    url,
    sampler: settings.otelTracesSampler,
    samplerArg: settings.otelTracesSamplerArg,
    delayMs: settings.spanDelayMs,
    scheme: settings.tlsCertFile === undefined ? 'http' : 'https',
    upstream: {
      address: upstreamUrl.hostname,
      port: Number(upstreamUrl.port || (upstreamUrl.protocol === 'https:' ? 443 : 80)),
    },
    logAddresses: settings.logAddresses,
    version,
    log,
  })
  telemetry.observeTable('spans', () => tracing.readUse())
  return tracing
}
