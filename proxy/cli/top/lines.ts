import { printable } from '../../../shared/settings/problems.ts'
import { isRecord } from '../operate/admin-client.ts'
import { formatCount, formatDuration, formatTable } from '../output.ts'
import type { Snapshot } from './snapshot.ts'

/**
 * Returns the lines of a snapshot: the state of the gateway, its rules, and the most refused clients. Names of clients and rules are
 * escaped, so that they cannot move the terminal's cursor. They come last in their lines, since a terminal cuts off the ends of long lines.
 *
 * @param rows the maximum number of lines. Rules and clients get half each; if one needs less, the other gets the rest
 */
export function linesOf(snapshot: Snapshot, rows = Infinity): string[] {
  const { rules, clients } = snapshot
  const head = headOf(snapshot)
  if (snapshot.away !== undefined) return head
  const room = Math.max(2, rows - head.length - 4)
  const forRules = Math.max(1, room - Math.min(clients.length, Math.floor(room / 2)))
  const ruleRows = rules
    .slice(0, forRules)
    .map(({ name, allowed, refused, shadow }) => [rate(allowed), rate(refused), rate(shadow), name])
  const clientRows = clients
    .slice(0, Math.max(1, room - ruleRows.length))
    .map(({ rule, client, label, refusals, resetSeconds }) => [
      formatCount(refusals),
      formatDuration(resetSeconds),
      rule,
      label ?? client,
    ])
  return [
    ...head,
    '',
    ...formatTable(['>allowed/s', '>refused/s', '>shadow/s', 'rule'], ruleRows).split('\n'),
    '',
    ...formatTable(['>refused', '>resets in', 'rule', 'client'], clientRows).split('\n'),
  ].slice(0, rows)
}

function headOf(snapshot: Snapshot): string[] {
  const { at, gateway, away, status = {}, breakerOpen, connections, requests } = snapshot
  const time = at.slice(11, 19)
  if (away !== undefined) return [`sluice ${printable(gateway)}  ${time} UTC  away: ${printable(away)}`]
  const shown = (name: string): string => {
    const value = status[name]
    return typeof value === 'string' ? printable(value) : '?'
  }
  const { unavailableStoreNodes: nodes } = status
  const open = Array.isArray(nodes)
    ? `circuit breaker open: ${nodes.map(String).map(printable).join()}`
    : 'circuit breaker open'
  const all = requests === null || requests === undefined ? '-' : rate(requests)
  return [
    `sluice ${printable(gateway)}  ${time} UTC  ${shown('status')}  up ${formatDuration(status['uptimeSeconds'])}`,
    `store ${shown('store')}${breakerOpen ? ` (${open})` : ''}  backend ${shown('upstream')}  table ${shown('tableHash')}` +
      `  ${formatCount(connections ?? 0)} connections  ${all} requests/s`,
    ...problemsIn(snapshot),
  ]
}

/** Returns the problems of the gateway, one a line. */
function problemsIn({ status = {}, workersAnswering = 0, lastReadSucceeded }: Snapshot): string[] {
  const { limitsEnabled, workers, servers } = status
  const count = (state: string): number => (isRecord(servers) ? Number(servers[state] ?? 0) : 0)
  const outOfUse = count('ejected') + count('unhealthy')
  return [
    ...(limitsEnabled === false ? ['rate limiting is off'] : []),
    ...(lastReadSucceeded === false
      ? ['the last reload was refused: the previous limits are in effect']
      : []),
    ...(typeof workers === 'number' && workersAnswering < workers
      ? [`${workersAnswering} of ${workers} workers answer`]
      : []),
    ...(outOfUse > 0 ? [`${outOfUse} of ${outOfUse + count('available')} servers are out of use`] : []),
  ]
}

function rate(perSecond: number): string {
  return perSecond >= 10 ? formatCount(Math.round(perSecond)) : String(Math.round(perSecond * 10) / 10)
}
