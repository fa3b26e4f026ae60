import { countsInFlight } from '../../limits/algorithms/registry.ts'
import { printable } from '../../../shared/settings/problems.ts'
import type { Explanation } from '../../limits/explain/explain.ts'
import type { OverPolicy } from '../../policy.ts'
import type { ExplainedRule } from '../../limits/explain/explain-rule.ts'
import { formatCount, formatDuration, print } from '../output.ts'

/** The use of one counter of a running gateway. Values are null if they are unknown because Redis is unavailable. */
type PrintedState = {
  readonly limit: number
  readonly remaining: number | null
  readonly resetSeconds: number | null
  readonly source: string
  readonly bannedSeconds?: number
  readonly overrideSeconds?: number
  readonly label?: string
}

/** The printed parts of an explanation. The parts from a running gateway are optional. */
export type PrintedExplanation = Omit<Explanation, 'ban' | 'rules'> & {
  readonly ban?: { readonly expiresSeconds?: number; readonly reason?: string } | undefined
  readonly refusedBy?: string | null
  readonly routedBy?: string | null
  readonly rules: readonly (ExplainedRule & { readonly states?: readonly PrintedState[] })[]
}

/** Maximum number of readings that are shown. A path with `;` and `%2F` has dozens. */
const MAX_READINGS = 8

/** @param limits the source of the limits */
export function printExplanation(explanation: PrintedExplanation, limits: string): void {
  const { path, readings, host, upstream, client, rules } = explanation
  const lines = [`outcome  ${outcomeOf(explanation)}`]
  if (path !== null)
    lines.push(`path     ${path}`, `matched  ${listReadings(readings)}`, `host     ${host ?? ''}`)
  // Without routes, every request goes to the only backend.
  if (path !== null && upstream === null) lines.push('route    no route matches: answered 404')
  else if (path !== null && upstream !== 'default') lines.push(`route    ${upstream}`)
  lines.push(
    `client   ${client.address}${client.counts === client.address ? '' : `, counts as ${client.counts}`}`,
  )
  lines.push(`         ${client.why}`, `limits   ${limits}`)
  const counting = rules.filter(({ counts }) => counts)
  const near = rules.filter((rule) => !rule.counts && rule.near)
  for (const rule of counting) lines.push('', ...describeCounting(rule))
  if (near.length > 0) lines.push('', 'nearly:')
  for (const { name, why = '' } of near) lines.push(`  ${name}: ${why}`)
  const others = rules.length - counting.length - near.length
  if (others > 0)
    lines.push('', `${formatCount(others)} other ${others === 1 ? 'rule does' : 'rules do'} not match`)
  print(lines.map(printable).join('\n'))
}

function outcomeOf({ outcome, status, why, ban, refusedBy, routedBy, rules }: PrintedExplanation): string {
  const counted = rules.filter(({ counts }) => counts).length
  const by = `${counted} ${counted === 1 ? 'rule' : 'rules'}`
  if (refusedBy && outcome === 'limited') return `refused now by ${refusedBy}, counts under ${by}`
  if (routedBy && outcome === 'limited') {
    const over = rules.find(({ name }) => name === routedBy)?.over
    return `sent ${over ? describeOver(over) : ''} now by ${routedBy}, counts under ${by}`
  }
  if (outcome === 'limited') return `counts under ${by}`
  if (outcome === 'forwarded') return 'forwarded without a counter: no rule counts it'
  const how = ban && `, for ${ban.expiresSeconds} s${ban.reason === undefined ? '' : `: ${ban.reason}`}`
  return `answered ${status ?? ''} by the gateway: ${why ?? ''}${how ?? ''}`
}

function listReadings(readings: readonly string[]): string {
  const more = readings.length - MAX_READINGS
  return readings.slice(0, MAX_READINGS).join('  ') + (more > 0 ? `  and ${more} more` : '')
}

function describeCounting(rule: PrintedExplanation['rules'][number]): string[] {
  const {
    name,
    requests,
    windowSeconds,
    calendar,
    algorithm,
    mode,
    over,
    waitingFull,
    lease,
    plan,
    keys,
    units,
    key,
    why,
    states = [],
  } = rule
  const quota = countsInFlight({ algorithm })
    ? `${formatCount(requests)} in flight`
    : calendar
      ? `${formatCount(requests)} in a ${calendar.unit} (${calendar.timezone})`
      : `${formatCount(requests)} in ${windowSeconds} s, ${algorithm}`
  const terms = [
    `rule ${name}: ${quota}`,
    ...(mode === 'shadow' ? ['shadow'] : []),
    ...(over ? [`then ${describeOver(over)}${waitingFull ? ' (no place is free)' : ''}`] : []),
    ...(lease === undefined ? [] : [`lease ${lease}`]),
    ...(plan === undefined ? [] : [`plan ${plan}`]),
    ...(why === undefined ? [] : [why]),
  ]
  return [
    terms.join(', '),
    ...key.map(({ part, values }) => `  ${part}${values.map((value) => ` ${value}`).join(' or')}`),
    `  counter ${keys.join(', ')}`,
    ...(units.some((each) => each !== 1) ? [`  reserves ${units.map(formatCount).join(', ')}`] : []),
    ...states.map((state) => `  ${describeState(state)}`),
  ]
}

function describeOver(over: OverPolicy): string {
  return 'route' in over ? `to route ${over.route}` : `waits up to ${over.delayMs / 1000} s`
}

function describeState(state: PrintedState): string {
  const { limit, remaining, resetSeconds, source, bannedSeconds, overrideSeconds, label } = state
  const left =
    remaining === null
      ? 'unknown: Redis is unavailable'
      : `${formatCount(remaining)} of ${formatCount(limit)} left`
  return [
    left,
    ...(resetSeconds === null ? [] : [`resets in ${formatDuration(resetSeconds)}`]),
    ...(source === 'local' ? ['counted in this gateway, as Redis is unavailable'] : []),
    ...(overrideSeconds === undefined ? [] : [`a limit of its own for ${formatDuration(overrideSeconds)}`]),
    ...(bannedSeconds === undefined ? [] : [`banned for ${formatDuration(bannedSeconds)}`]),
    ...(label === undefined ? [] : [label]),
  ].join(', ')
}
