import { expect, test } from 'vitest'
import { composeTracing } from '../../../proxy/app/observe/tracing.ts'
import type { GatewaySettings } from '../../../proxy/config/settings.ts'
import { createLog } from '../../../shared/log.ts'
import type { Telemetry } from '../../../proxy/telemetry/telemetry.ts'

test('nothing is traced without a collector', async () => {
  const settings = { otelExporterOtlpEndpoint: undefined }
  const compose = composeTracing(
    settings as unknown as GatewaySettings,
    {} as Telemetry,
    createLog('test', 'silent'),
  )
  expect(await compose).toBeUndefined()
})
