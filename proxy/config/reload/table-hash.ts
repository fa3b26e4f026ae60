import { createHash, hash } from 'node:crypto'
import { doAtOnce, type Steps } from '../../../shared/steps.ts'
import type { GatewaySettings } from '../settings.ts'

/**
 * A short SHA-256 of the current table of limits, files that it names included: the same on all replicas that have the same
 * table, whatever its file is called and however it is written.
 */
export function hashTable(settings: GatewaySettings): string {
  return doAtOnce(hashTableInSteps(settings))
}

/** The same in steps, so that requests are served meanwhile. */
export function* hashTableInSteps(settings: GatewaySettings): Steps<string> {
  const { rateLimitingDisabled, rules, allowList, denyList, cors, refusals, jwt, rateLimitHeaders, routes } =
    settings
  const { requestHeaders, deviceSecret, geoip } = settings
  const table = {
    rules: rateLimitingDisabled ? [] : rules,
    allowList,
    denyList,
    cors,
    refusals: [refusals.everyRule, ...refusals.ofRules],
    jwt,
    rateLimitHeaders,
    ...(routes && { routes }),
    ...(geoip && { geoip }),
    ...(requestHeaders.length > 0 && { requestHeaders }),
    // Replicas with other secrets do not know each other's devices.
    ...(deviceSecret && { deviceSecrets: deviceSecret.map((secret) => hash('sha256', secret).slice(0, 12)) }),
  }
  const whole = createHash('sha256')
  for (const text of writeJson(table)) {
    whole.update(text)
    yield
  }
  return whole.digest('hex').slice(0, 12)
}

/** Writes JSON, of lists one item at a time. */
function* writeJson(table: Readonly<Record<string, unknown>>): Generator<string> {
  let mark = '{'
  for (const [name, value] of Object.entries(table)) {
    if (value === undefined) continue
    yield `${mark}${JSON.stringify(name)}:`
    mark = ','
    if (Array.isArray(value)) yield* writeItems(value)
    else yield JSON.stringify(value, withoutState)
  }
  yield '}'
}

function* writeItems(items: readonly unknown[]): Generator<string> {
  for (const [index, item] of items.entries())
    yield `${index === 0 ? '[' : ','}${JSON.stringify(item ?? null, withoutState)}`
  yield items.length === 0 ? '[]' : ']'
}

/**
 * A replacer for JSON: workers count the revisions of their policies (`reviseRules`); the revisions are not part of the table, nor is
 * the folder on this machine that a file of addresses is in. Plans of these names are part of it.
 */
function withoutState(this: Readonly<Record<string, unknown>>, name: string, value: unknown): unknown {
  const isState =
    (name === 'revision' && Array.isArray(this['partition'])) ||
    (name === 'location' && typeof this['file'] === 'string')
  return isState ? undefined : value
}
