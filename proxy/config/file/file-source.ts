import { showOrigin, showUrl } from '../../../shared/settings/addresses.ts'
import { problemAt, showValue, type Source } from '../../../shared/settings/problems.ts'
import { NOT_SHOWN } from '../../../shared/settings/secret-path.ts'
import { fileNames } from '../../../shared/settings/table.ts'
import { ruleName, writtenName } from '../rules/limits.ts'
import { gatewayTable } from '../settings-table.ts'
import { problemOfUnsupported } from '../written/unsupported-settings.ts'
import { suggestionFor } from './suggestions.ts'
import type { YamlMapping } from './yaml-document.ts'

const settings = Object.entries(gatewayTable)
const shows = new Map<string, ((value: unknown) => string) | undefined>([
  ...settings.flatMap(([property, setting]) =>
    fileNames(property, setting).map((field) => [field, setting.kind.show] as const),
  ),
  ['webhooks', showOrigin] as const,
  ['crowdsec', showUrl] as const,
  ['jwt', showUrl] as const,
])
/**
 * The settings file as a source of settings. Messages begin with `sluice.yaml:4: port` or `sluice.yaml:9: rule "login", window`.
 *
 * @param name the file's path as it was given
 */
export function createFileSource(name: string, { value: given, lineOf, lineOfName }: YamlMapping): Source {
  const placeAt = (line: number, subject: string | undefined) => ({
    line,
    label: subject === undefined ? `${name}:${line}` : `${name}:${line}: ${subject}`,
  })
  return {
    given,
    placeOf: (path) => placeAt(lineOf(path), subjectOf(given, path)),
    show: (field, value, path) => {
      if (path.includes('requestHeaders') && mayBeLogin(value)) return NOT_SHOWN
      if (field === 'webhooks' && path.includes('events')) return showValue(value)
      if ((field === 'jwt' || field === 'crowdsec') && path.length === 1 && mayBeSecret(value))
        return NOT_SHOWN
      // A URL may hold a password.
      return (shows.get(field === 'routes' ? 'upstream' : field) ?? showValue)(value)
    },
    problemOfUnknown: (path) => {
      const place = placeAt(lineOfName(path), subjectOf(given, path.slice(0, -1)))
      const field = String(path.at(-1))
      const unsupported = path.length === 1 ? problemOfUnsupported(field) : undefined
      if (unsupported !== undefined)
        return { ...problemAt(placeAt(place.line, field), unsupported), suggested: [] }
      const unknown = `unknown field ${showValue(field)}`
      const suggestion = suggestionFor(field, path.slice(0, -1))
      return {
        ...problemAt(place, suggestion === undefined ? unknown : `${unknown}, ${suggestion.hint}`),
        suggested: suggestion?.fields ?? [],
      }
    },
  }
}

/** Whether a value may be a login, such as a key of digits without quotes. */
function mayBeLogin(value: unknown): boolean {
  return value !== undefined && value !== null && value !== '' && typeof value !== 'object'
}

/** Whether a value may be a secret that was written in place of the mapping that names its file. */
function mayBeSecret(value: unknown): boolean {
  return mayBeLogin(value) && !(typeof value === 'string' && /^https?:\/\//.test(value))
}

/**
 * Returns the subject of a path, for messages: `port`, `refusal.status`, `rule "login", window`, `rule "login", ban.for`. A rule without a
 * valid name is referred to by its number.
 */
function subjectOf(
  given: Readonly<Record<string, unknown>>,
  path: readonly PropertyKey[],
): string | undefined {
  const [field, index, ...inRule] = path
  if ((field !== 'limits' && field !== 'routes') || index === undefined) return dotted(path)
  const kind = field === 'limits' ? 'rule' : 'route'
  const rule = `${kind} ${nameOf(given[field], Number(index)) ?? Number(index) + 1}`
  const within = dotted(inRule)
  return within === undefined ? rule : `${rule}, ${within}`
}

/** Mappings whose members are not fields, but names of headers and the like. */
const mappingsOfHeaders: ReadonlySet<PropertyKey> = new Set([
  'headers',
  'requestHeaders',
  'header',
  'cookie',
  'query',
  'clients',
])

/** Joins the fields of a path, up to the first entry of a list or header, which the line number identifies. Undefined without a field. */
function dotted(path: readonly PropertyKey[]): string | undefined {
  const end = path.findIndex(
    (step, at) => typeof step === 'number' || (at > 0 && mappingsOfHeaders.has(path[at - 1] ?? '')),
  )
  return path.slice(0, end === -1 ? undefined : end).join('.') || undefined
}

/** The name of a rule or a route, in quotes; undefined without a valid name. */
function nameOf(entries: unknown, index: number): string | undefined {
  const name = writtenName(Array.isArray(entries) ? entries[index] : undefined)
  return name !== undefined && ruleName.test(name) ? `"${name}"` : undefined
}
