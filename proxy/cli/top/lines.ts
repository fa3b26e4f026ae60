import { printable } from '../../../shared/settings/problems.ts'
import { formatCount, formatDuration, formatTable } from '../output.ts'
import type { Snapshot } from './snapshot.ts'

/**
 * Returns the lines of a snapshot: the state of the gateway, its rules, and the most refused clients. Names of clients and rules are
 * escaped, so that they cannot move the terminal's cursor.
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
    .map(({ name, allowed, refused, shadow }) => [name, rate(allowed), rate(refused), rate(shadow)])
  const clientRows = clients
    .slice(0, Math.max(1, room - ruleRows.length))
    .map(({ rule, client, label, refusals, resetSeconds }) => [
      label ?? client,
      rule,
      formatCount(refusals),
      formatDuration(resetSeconds),
    ])
  return [
    ...head,
    '',
    ...formatTable(['rule', '>allowed/s', '>refused/s', '>shadow/s'], ruleRows).split('\n'),
    '',
    ...formatTable(['client', 'rule', '>refused', '>resets in'], clientRows).split('\n'),
  ].slice(0, rows)
}

function headOf({ at, gateway, away, status = {}, breakerOpen, connections, requests }: Snapshot): string[] {
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
      `  ${formatCount(connections ?? 0)} connections  ${all} requests/s` +
      (status['limitsEnabled'] === false ? '  rate limiting is off' : ''),
  ]
}

function rate(perSecond: number): string {
  return perSecond >= 10 ? formatCount(Math.round(perSecond)) : String(Math.round(perSecond * 10) / 10)
}
