import { writeClient } from '../../operate/client-argument.ts'
import { formatCount, formatCountOf } from '../../output.ts'
import type { Report, RuleReport } from '../report.ts'
import { FITTED_PART, type Suggestion } from '../suggest.ts'
import { escapeHtml, htmlTable } from './markup.ts'
import { plotOverTime, plotPeaks } from './plots.ts'
import { style } from './style.ts'

/**
 * Renders the report as a self-contained page: no script, no font and no network, which its Content-Security-Policy forbids.
 *
 * @param limits the source of the limits
 */
export function renderPage(
  report: Report,
  limits: string,
  suggestions: readonly (Suggestion & { readonly table: string })[],
): string {
  const { requests, from, to, overTime, rules } = report
  const fromMs = Date.parse(overTime.from ?? '1970-01-01T00:00:00Z')
  const time = { fromMs, bucketMs: overTime.bucketSeconds * 1000 }
  const summary = `${formatCount(requests.total)} requests from ${from ?? '-'} to ${to ?? '-'}: ${formatCount(requests.limited)} counted by a rule, ${formatCount(requests.refused)} refused (${formatCount(requests.banned)} of them as their client was banned), ${formatCount(requests.denied)} denied.`
  const sections = rules.map((rule, place) => {
    const series = overTime.rules[place] ?? { requests: [], refused: [] }
    return renderRule(
      rule,
      rule.requests > 0 ? plotOverTime(`Requests under ${rule.name}`, series, time) : '',
    )
  })
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="referrer" content="no-referrer">
<title>sluice replay</title>
<style>
${style}</style></head><body><main>
<h1>What the limits would have done</h1>
<p>${escapeHtml(summary)}</p>
<p>Limits: ${escapeHtml(limits)} <span class="key">passed, or within the limit</span> <span class="key over">refused, or over the limit</span></p>
${plotOverTime('All requests', overTime, time)}
<h2>Rules</h2>
${htmlTable('The rules, and what each would have done', ['Rule', 'Mode', '>Limit', '>Window', '>Requests', '>Refused', '>Clients', '>Clients refused'], rules.map(cellsOf))}
${sections.join('\n')}
${suggestions.map(renderSuggestion).join('\n')}
${renderNotes(report)}
</main></body></html>
`
}

function cellsOf({
  name,
  mode,
  limit,
  windowSeconds,
  calendar,
  requests,
  refused,
  clients,
  clientsRefused,
}: RuleReport): string[] {
  const window = calendar?.unit ?? `${formatCount(windowSeconds)} s`
  return [
    name,
    mode,
    formatCount(limit),
    window,
    ...[requests, refused, clients, clientsRefused].map(formatCount),
  ]
}

function renderRule(rule: RuleReport, plot: string): string {
  const { name, mode, over, delayed = 0, requests, bans = 0, clientsByPeak, busiest, unknown } = rule
  const busy = busiest.map(({ client, requests: all, refused, peak, over }) => [
    writeClient(client),
    ...[all, refused, peak, over].map(formatCount),
  ])
  const notes = unknown.map(
    ({ what, requests: count }) =>
      `<li>Not in the log, so it may count otherwise: ${escapeHtml(what)} (${formatCount(count)} requests)</li>`,
  )
  if (mode === 'shadow')
    notes.push(
      '<li>In shadow mode: it refuses nothing; requests shown as refused would have been refused.</li>',
    )
  else if (over && 'route' in over)
    notes.push(`<li>Requests shown as refused would have been sent to route ${escapeHtml(over.route)}.</li>`)
  if (delayed > 0) notes.push(`<li>${formatCount(delayed)} requests would have waited for their turn.</li>`)
  if (bans > 0) notes.push(`<li>${formatCount(bans)} bans.</li>`)
  if (requests === 0) notes.push('<li>It counts no request.</li>')
  return `<section><h2>${escapeHtml(name)}</h2>
${notes.length > 0 ? `<ul>${notes.join('')}</ul>` : ''}
${plot}
${requests > 0 ? plotPeaks(`Clients of ${name} against the limit (heights are logarithmic)`, clientsByPeak) : ''}
${busy.length > 0 ? htmlTable(`The busiest clients of ${name}`, ['Client', '>Requests', '>Refused', '>In a window', '>Over'], busy) : ''}
</section>`
}

function renderSuggestion({ share, rules, table }: Suggestion & { readonly table: string }): string {
  const rows = rules.map(({ name, requests, clients, clientsOver, over, heldOut }) => [
    name,
    ...[requests, clients, clientsOver].map(formatCount),
    over.map(({ client, peak }) => `${writeClient(client)} (${formatCount(peak)})`).join(', '),
    ...[heldOut.clients, heldOut.clientsRefused, heldOut.requests, heldOut.refused].map(formatCount),
  ])
  const columns = [
    'Rule',
    '>Limit',
    '>Clients',
    '>Over',
    'They are',
    '>Clients later',
    '>Refused',
    '>Requests later',
    '>Refused',
  ]
  return `<section><h2>Suggested: refusing at most ${share * 100} % of the clients of a rule</h2>
<p>Made from the first ${Math.round(FITTED_PART * 100)} % of the time, and tried on the remaining time.</p>
${htmlTable('Suggested limits', columns, rows)}
<pre>${table.trimEnd().split('\n').map(escapeHtml).join('\n')}</pre></section>`
}

/** Renders notes about input that was left out. */
function renderNotes({ lines, requests }: Report): string {
  const notes = Object.entries(requests.rejected).map(
    ([why, count]) => `${formatCount(count)} rejected as malformed: ${why}`,
  )
  if (requests.late > 0)
    notes.push(
      `${formatCount(requests.late)} were too far out of order: counted at the time of the requests before them`,
    )
  if (requests.ofProxies > 0)
    notes.push(
      `${formatCount(requests.ofProxies)} counted by the address of a trusted proxy: the log does not name their clients`,
    )
  if (requests.untracked > 0)
    notes.push(
      `${formatCount(requests.untracked)} are of clients beyond the first 2,000,000, which the report does not list by client`,
    )
  if (lines.unreadable > 0) notes.push(`${formatCountOf(lines.unreadable, 'line')} could not be read`)
  if (notes.length === 0) return ''
  const examples = lines.examples.map(({ file, line, why, text }) => [`${file}:${line}`, why, text])
  return `<section><h2>Left out</h2>
<ul>${notes.map((note) => `<li>${escapeHtml(note)}</li>`).join('')}</ul>
${examples.length > 0 ? htmlTable('The first lines that could not be read', ['Line', 'Why', 'Text'], examples) : ''}</section>`
}
