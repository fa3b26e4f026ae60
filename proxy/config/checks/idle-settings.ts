import { showValue, type Place } from '../../../shared/settings/problems.ts'
import type { ReadSettings } from '../../../shared/settings/settings.ts'
import { variableName, type SettingsOf } from '../../../shared/settings/table.ts'
import { calendarUnits } from '../../limits/algorithms/calendar/calendar.ts'
import type { Policy, Rule } from '../../policy.ts'
import { singleParts } from '../../policy/partition.ts'
import { conditionClaims } from '../../limits/rules/condition-needs.ts'
import { gatewayTable } from '../settings-table.ts'
import type { PlaceOfRule } from './table.ts'

type Read = Pick<ReadSettings<typeof gatewayTable>, 'values' | 'placeOf'>

/** Warns of settings that have no effect in combination with the others. */
export function warnOfIdleSettings({ values, placeOf }: Read): string[] {
  const { accessLog = false, namespace, redisUrl, logLevel = 'info', ipv6Prefix = 64 } = values
  const hidesLines = logLevel !== 'info' && logLevel !== 'debug' && logLevel !== 'trace'
  return [
    ...(hidesLines && accessLog !== false
      ? [
          `${placeOf('accessLog').label}: has no effect at logLevel ${logLevel}, as its lines have the level info`,
        ]
      : []),
    ...(namespace !== undefined && redisUrl === undefined
      ? [`${placeOf('namespace').label}: has no effect without Redis (REDIS_URL)`]
      : []),
    ...(ipv6Prefix > 64
      ? [
          `${placeOf('ipv6Prefix').label}: ${ipv6Prefix} lets a client with a /64 network, as most have, count as many different clients; 64 makes it one`,
        ]
      : []),
  ]
}

/** Warns if `jwt` is set, but no rule reads tokens. */
export function warnOfIdleTokens(rules: readonly Rule[], { label }: Place): string[] {
  const isUsed = rules.some(
    (rule) =>
      conditionClaims(rule).length > 0 ||
      rule.policy.plans?.claim !== undefined ||
      singleParts(rule.policy.partition).some(({ kind }) => kind === 'jwt'),
  )
  return isUsed
    ? []
    : [`${label}: has no effect, as no rule has jwt:CLAIM in its key or plan, or jwt in when or unless`]
}

/** Warns of rules that lease units if there is no Redis to lease them from. */
export function warnOfIdleLeases(
  rules: readonly Rule[],
  redisUrl: string | undefined,
  placeOf: PlaceOfRule,
): string[] {
  if (redisUrl !== undefined) return []
  return [...rules.entries()].flatMap(([index, { policy }]) =>
    policy.lease === undefined
      ? []
      : [
          `${placeOf(index, 'lease').label}: has no effect without Redis (REDIS_URL), as this process keeps the counters`,
        ],
  )
}

/** Warns if a time zone is set, but no rule has a calendar window. */
export function warnOfIdleTimezone(rules: readonly Rule[], { values, placeOf }: Read): string[] {
  const { label } = placeOf('timezone')
  return values.timezone === 'UTC' || rules.some(({ policy }) => policy.calendar)
    ? []
    : [`${label}: has no effect, as no rule has window: ${calendarUnits.join(', ')}`]
}

/**
 * Warns of rules that never refuse a request, because another rule counts the same requests of the same clients in the same windows and has
 * the same or a lower quota.
 */
export function warnOfIdleRules(rules: readonly Rule[], placeOf: PlaceOfRule): string[] {
  const strictest = new Map<string, { readonly index: number; readonly policy: Policy }>()
  for (const [index, rule] of rules.entries()) {
    const sameness = samenessOf(rule)
    if (sameness === undefined) continue
    const known = strictest.get(sameness)
    if (!known || rule.policy.quota < known.policy.quota)
      strictest.set(sameness, { index, policy: rule.policy })
  }
  return [...rules.entries()].flatMap(([index, rule]) => {
    const other = strictest.get(samenessOf(rule) ?? '')
    if (!other || other.index === index) return []
    const { label } = placeOf(index, 'name')
    return `${label}: never refuses anybody, as rule "${other.policy.name}" counts the same and allows no more: keep one`
  })
}

/** Returns a text that is equal for rules that differ only in name and quota; undefined for rules that are not compared. */
function samenessOf({ policy, ...rule }: Rule): string | undefined {
  if (policy.mode === 'shadow' || rule.overrides || rule.refusal) return undefined
  return JSON.stringify([{ ...policy, name: '', quota: 0 }, rule])
}

type Tracing = Pick<
  SettingsOf<typeof gatewayTable>,
  'otelExporterOtlpEndpoint' | 'otelExporterOtlpTracesEndpoint' | 'otelSdkDisabled' | 'otelTracesExporter'
>

/** The variables that OpenTelemetry's packages read themselves. */
const ofPackages =
  /^OTEL_(SERVICE_NAME|RESOURCE_ATTRIBUTES|EXPORTER_OTLP_(TRACES_)?(HEADERS|TIMEOUT|COMPRESSION|CERTIFICATE|CLIENT_KEY|CLIENT_CERTIFICATE))$/
const ofProtocol = /^OTEL_EXPORTER_OTLP_(TRACES_)?PROTOCOL$/
const PROTOCOL = 'http/json'

function exportsSpans(values: Tracing): boolean {
  const endpoint = values.otelExporterOtlpTracesEndpoint ?? values.otelExporterOtlpEndpoint
  return endpoint !== undefined && !values.otelSdkDisabled && values.otelTracesExporter !== 'none'
}

/**
 * Warns of variables of OpenTelemetry that have no effect here, if spans are exported. Without an endpoint, warns of an exporter: by
 * OpenTelemetry's specification the endpoint would be one on this machine.
 */
export function warnOfIdleTracing(env: NodeJS.ProcessEnv, values: Tracing): string[] {
  const given = Object.keys(env).filter((name) => name.startsWith('OTEL_') && env[name])
  if (!exportsSpans(values)) {
    const isLost =
      env['OTEL_TRACES_EXPORTER'] && values.otelTracesExporter === 'otlp' && !values.otelSdkDisabled
    return isLost ? ['OTEL_TRACES_EXPORTER: no spans are exported without OTEL_EXPORTER_OTLP_ENDPOINT'] : []
  }
  const read = new Set(Object.keys(gatewayTable).map((property) => variableName(property)))
  const unread = given.filter((name) => !read.has(name) && !ofPackages.test(name) && !ofProtocol.test(name))
  // Other signals than traces are not exported in any case.
  const idle = unread.filter((name) => !name.endsWith('_EXPORTER') || env[name] !== 'none')
  return [
    ...given
      .filter((name) => ofProtocol.test(name) && env[name] !== PROTOCOL)
      .map((name) => `${name}: got ${showValue(env[name])}, spans are exported by ${PROTOCOL}`),
    ...(idle.length > 0 ? [`${idle.toSorted().join(', ')}: not read by the gateway`] : []),
  ]
}
