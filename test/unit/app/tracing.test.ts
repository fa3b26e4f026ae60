import { expect, test } from 'vitest'
import { composeTracing } from '../../../proxy/app/observe/tracing.ts'
import type { GatewaySettings } from '../../../proxy/config/settings.ts'
import { createLog } from '../../../shared/log.ts'
import type { Telemetry } from '../../../proxy/telemetry/telemetry.ts'

test('nothing is traced with OTEL_SDK_DISABLED, although there is a collector', async () => {
  const settings = { otelExporterOtlpEndpoint: 'http://127.0.0.1:4318', otelSdkDisabled: true }
  const compose = composeTracing(
    settings as unknown as GatewaySettings,
    {} as Telemetry,
    createLog('test', 'silent'),
  )
  expect(await compose).toBeUndefined()
})
