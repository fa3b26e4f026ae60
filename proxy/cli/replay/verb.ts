import { statSync } from 'node:fs'
import { sortTrustedProxies } from '../../request/addresses/trusted-proxies.ts'
import { readAuthority } from '../../request/authority.ts'
import type { GatewaySettings } from '../../config/settings.ts'
import { readGeo } from '../../app/addresses/live-geo.ts'
import { readListsOf } from '../settings/read-lists.ts'
import { showValue } from '../../../shared/settings/problems.ts'
import { CommandError, printError, printJson, status } from '../output.ts'
import { loadSettings, nameLimits, type ConfigOption } from '../settings/settings.ts'
import { readExcluded } from './excluded.ts'
import { lineReader } from './logs/formats.ts'
import type { LoggedRequest } from './logs/logged-request.ts'
import { rewriteLimits } from '../../config/written/rewritten-limits.ts'
import { printSuggestions } from './text/suggestions.ts'
import { printReport } from './text/report.ts'
import { showProgress } from './progress.ts'
import { openLog } from './logs/read-lines.ts'
import { createLineCounts, readLogs, type LineCounts } from './logs/read-logs.ts'
import { makeReport, type Report } from './report.ts'
import { simulate, type Simulation, type SimulationOptions } from './simulation/simulation.ts'
import { createSuggester, FITTED_PART, type Suggestion } from './suggest.ts'

export type ReplayOptions = ConfigOption & {
  /** One of `formatNames`. */
  readonly format: string
  readonly host?: string
  readonly suggest?: true
  readonly exclude?: readonly string[]
  readonly json?: true
  readonly html?: true
}

type WrittenSuggestion = Suggestion & { readonly table: string }

/** Shows what the limits would have done to the requests of these logs. @returns the exit status: 1 if no request could be read */
export async function replay(files: readonly string[], options: ReplayOptions): Promise<number> {
  if (options.host !== undefined && readAuthority(options.host) === undefined)
    throw new CommandError(`--host needs HOST or HOST:PORT, got ${showValue(options.host)}`, status.usage)
  const settings = loadSettings(options)
  const { lists } = readListsOf(settings)
  const geo = await readGeo(settings.geoip)
  if (files.filter((file) => file === '-').length > 1)
    throw new CommandError('standard input can be read once only', status.usage)
  if (options.suggest && files.includes('-'))
    throw new CommandError('--suggest reads the logs twice, so it needs files', status.usage)
  const pipe = options.suggest && files.find(isPipe)
  if (pipe)
    throw new CommandError(
      `--suggest reads the logs twice, so ${showValue(pipe)} must be a file`,
      status.usage,
    )
  if (options.suggest && settings.limitsFile !== undefined && !statSync(settings.limitsFile).isFile())
    throw new CommandError('--suggest reads the settings twice, so they must be in a file', status.usage)
  const given: SimulationOptions = {
    proxies: trustedNetworks(settings),
    defaultHost: options.host,
    excluded: readExcluded(options.exclude ?? []),
    lists,
    geo,
  }
  const start = (tried: GatewaySettings): Simulation => simulate(tried, given)
  const { add, tally } = start(settings)
  const report = makeReport(await readInto(files, options, add), tally)
  const suggestions = options.suggest ? await suggest(files, options, settings, report, start) : undefined
  if (options.json) printJson({ ...report, ...(suggestions && { suggestions }) })
  else if (options.html) {
    const { renderPage } = await import('./html/page.ts')
    process.stdout.write(renderPage(report, nameLimits(settings), suggestions ?? []))
  } else {
    printReport(report, nameLimits(settings))
    if (suggestions) printSuggestions(suggestions)
  }
  return report.lines.read > 0 ? status.yes : status.no
}

/** Whether a file can be read only once: the pipe of `<(xzcat access.log.xz)` is empty the second time, a named pipe waits for a writer. */
function isPipe(file: string): boolean {
  try {
    return statSync(file).isFIFO()
  } catch {
    // `openLog` reports why the file cannot be read.
    return false
  }
}

/** Reads the logs a second time, because their start and end are only known after the first. */
async function suggest(
  files: readonly string[],
  options: ReplayOptions,
  settings: GatewaySettings,
  { from, to }: Report,
  start: (settings: GatewaySettings) => Simulation,
): Promise<WrittenSuggestion[]> {
  if (from === null || to === null) return []
  const fromMs = Date.parse(from)
  const suggester = createSuggester(settings, fromMs + FITTED_PART * (Date.parse(to) - fromMs), start)
  await readInto(files, options, (request) => suggester.add(request))
  return suggester.finish().map((suggestion) => {
    const requests = new Map(suggestion.rules.map((rule) => [rule.name, rule.requests]))
    return { ...suggestion, table: rewriteLimits(settings.limitsFile, requests) }
  })
}

/** Reads the logs from their beginning. */
async function readInto(
  files: readonly string[],
  { format }: ReplayOptions,
  take: (request: LoggedRequest) => void,
): Promise<LineCounts> {
  const counts = createLineCounts()
  const logs = files.map(openLog)
  const endProgress = showProgress(logs)
  try {
    for await (const requests of readLogs(logs, lineReader(format), counts))
      for (const request of requests) take(request)
  } finally {
    endProgress()
  }
  return counts
}

/** Returns the networks of trusted proxies. Host names are not looked up: they may have had other addresses when the log was written. */
function trustedNetworks({ trustedProxies }: GatewaySettings): readonly string[] {
  const { ranges, hosts } = sortTrustedProxies(trustedProxies)
  if (hosts.length > 0)
    printError(
      `warning: trustedProxies: ${hosts.join(', ')}: replay does not look up host names, give their addresses`,
    )
  return ranges
}
