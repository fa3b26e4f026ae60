/** The values of `OTEL_TRACES_SAMPLER` that OpenTelemetry's specification defines and its SDK for Node supports. */
export const samplerNames = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
] as const

export type SamplerName = (typeof samplerNames)[number]
