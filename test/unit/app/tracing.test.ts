import { expect, test } from 'vitest'
import { composeTracing } from '../../../proxy/app/observe/tracing.ts'
import type { GatewaySettings } from '../../../proxy/config/settings.ts'
import { createLog } from '../../../shared/log.ts'
import type { Telemetry } from '../../../proxy/telemetry/telemetry.ts'

test.each([
  ['OTEL_SDK_DISABLED', { otelSdkDisabled: true }],
  ['OTEL_TRACES_EXPORTER=none', { otelTracesExporter: 'none' }],
])('nothing is traced with %s, although there is a collector', async (_, off) => {
  const settings = { otelExporterOtlpEndpoint: 'http://127.0.0.1:4318', ...off }
  const compose = composeTracing(
    settings as unknown as GatewaySettings,
    {} as Telemetry,
    createLog('test', 'silent'),
  )
  expect(await compose).toBeUndefined()
})
