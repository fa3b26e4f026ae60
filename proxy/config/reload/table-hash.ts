import { createHash, hash } from 'node:crypto'
import { doAtOnce, type Steps } from '../../../shared/steps.ts'
import type { GatewaySettings } from '../settings.ts'

/**
 * Returns a short SHA-256 of the current table of limits, including the files that it names. It is equal on all replicas with the same
 * table, no matter how the settings file is named and written.
 */
export function hashTable(settings: GatewaySettings): string {
  return doAtOnce(hashTableInSteps(settings))
}

/** Does what `hashTable` does in steps, so that requests are served meanwhile. */
export function* hashTableInSteps(settings: GatewaySettings): Steps<string> {
  const { rateLimitingDisabled, rules, allowList, denyList, cors, refusals, jwt, rateLimitHeaders, routes } =
    settings
  const { requestHeaders, deviceSecret, geoip, hasFallback } = settings
  const table = {
    rules: rateLimitingDisabled ? [] : rules,
    allowList,
    denyList,
    cors,
    refusals: [refusals.everyRule, ...refusals.ofRules],
    jwt,
    rateLimitHeaders,
    ...(routes && { routes, hasFallback }),
    ...(geoip && { geoip }),
    ...(requestHeaders.length > 0 && { requestHeaders }),
    // Replicas with different secrets do not recognize each other's devices.
    ...(deviceSecret && { deviceSecrets: deviceSecret.map((secret) => hash('sha256', secret).slice(0, 12)) }),
  }
  const whole = createHash('sha256')
  for (const text of writeJson(table)) {
    whole.update(text)
    yield
  }
  return whole.digest('hex').slice(0, 12)
}

/** Writes JSON in pieces: lists one item at a time. */
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
 * A replacer for JSON that leaves out values that are not part of the table: the revisions of policies, which workers count
 * (`reviseRules`), and the paths of address files on this machine. Plans with these names are part of the table.
 */
function withoutState(this: Readonly<Record<string, unknown>>, name: string, value: unknown): unknown {
  const isState =
    (name === 'revision' && Array.isArray(this['partition'])) ||
    (name === 'location' && typeof this['file'] === 'string')
  return isState ? undefined : value
}
