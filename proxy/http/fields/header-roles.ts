import { unescape } from 'node:querystring'
import { ownCopy } from '../message/detach-buffer.ts'
import { headerName, type HeaderName } from '../message/header-list.ts'
import { Remembered } from '../message/remembered.ts'
import { token } from '../message/token.ts'
import { MAX_NAME_LENGTH, usualNames } from './field-names.ts'
import {
  answeredHere,
  forwardProxyHeaders,
  hopByHop,
  neverForwarded,
  trustedProxyHeaders,
  trustedProxyPrefixes,
  writtenByGateway,
} from './removed-headers.ts'

/**
 * How a proxy handles a header (RFC 9110 sections 5 and 7.6):
 *
 * - `end-to-end`: passed on as it is
 * - `hop-by-hop`: valid for this connection only, removed
 * - `own`: set by the gateway or not forwarded at all; removed from client requests
 * - `trusted-proxy`: forwarded if a trusted proxy sent it
 * - `client-address`: names the client of a trusted proxy; forwarded if the gateway believed it
 * - `connection-login`: says whether the connection to the backend is authenticated; passed on as it is
 * - `decisive`: used in a decision; forwarded as the single value that was decided on
 * - `reference`: names a resource of the backend; passed on as the backend knows it
 * - the other roles: read by the gateway and, if passed on, written anew
 */
export type FieldRole =
  | 'end-to-end'
  | 'hop-by-hop'
  | 'own'
  | 'trusted-proxy'
  | 'client-address'
  | 'connection'
  | 'connection-login'
  | 'content-length'
  | 'decisive'
  | 'cookie'
  | 'host'
  | 'keep-alive'
  | 'max-forwards'
  | 'transfer-encoding'
  | 'upgrade'
  | 'reference'
  | 'via'
  | 'x-forwarded-for'
  | 'x-forwarded-host'
  | 'x-forwarded-proto'

/** Returns the class of a request header by its lower-case name; undefined if the name is not a token (RFC 9110 section 5.6.2). */
export type RequestFieldClassifier = (name: string) => FieldClass | undefined

/**
 * - `decides`: a decision uses it. `Connection` cannot remove it, because the backend must see the value that the decision used
 * - `isAlias`: some backends take it for a header that rules read, or that overrides the method
 */
export type FieldClass = HeaderName & {
  readonly role: FieldRole
  readonly decides: boolean
  readonly isAlias: boolean
}

const commonRoles = new Map<string, FieldRole>([
  ...[...hopByHop, ...forwardProxyHeaders].map((name) => [name, 'hop-by-hop'] as const),
  // These are read before they are removed.
  ['connection', 'connection'],
  ['content-length', 'content-length'],
  ['keep-alive', 'keep-alive'],
  ['transfer-encoding', 'transfer-encoding'],
  ['upgrade', 'upgrade'],
])

const requestRoles = new Map<string, FieldRole>([
  ...[...neverForwarded, ...writtenByGateway].map((name) => [name, 'own'] as const),
  ...commonRoles,
  [answeredHere, 'hop-by-hop'],
  ['cookie', 'cookie'],
  ['host', 'host'],
  ['max-forwards', 'max-forwards'],
  ['via', 'via'],
  ['x-forwarded-for', 'x-forwarded-for'],
  ['x-forwarded-host', 'x-forwarded-host'],
  ['x-forwarded-proto', 'x-forwarded-proto'],
])

/** Headers of WebDAV that name resources (RFC 4918 sections 10.3 and 10.4). */
const references = ['destination', 'if'] as const

/** Backends may take the method from one of these headers. Rules are matched under this method too. */
export const methodOverrideFields = ['x-http-method-override', 'x-http-method', 'x-method-override'] as const

/**
 * Headers that make a request a preflight, which fewer rules count. Overrides of the method are not listed here: rules count the request's
 * own method too, so a client gains nothing by removing the override.
 */
const alwaysDecide = ['access-control-request-method', 'origin']

const capital = /[A-Z]/

/** Classifies fields by their names, and remembers the classes of names in use. */
function createClassifier(
  roles: ReadonlyMap<string, FieldRole>,
  roleOfOther: (name: string) => FieldRole,
  deciding: readonly string[] = [],
  isAlias: (name: string) => boolean = () => false,
): (name: string) => FieldClass | undefined {
  const decisive = new Set(deciding)
  const classOf = (name: string): FieldClass => ({
    ...headerName(name),
    role: roles.get(name) ?? roleOfOther(name),
    decides: decisive.has(name),
    isAlias: isAlias(name),
  })
  const remembered = new Remembered<FieldClass>(
    1024,
    MAX_NAME_LENGTH,
    usualNames.map((name) => [name, classOf(name)]),
  )
  return (name) => {
    const known = remembered.find(name)
    if (known) return known
    // A name with capitals would not be found among the roles.
    if (!token.test(name) || capital.test(name)) return undefined
    const copy = ownCopy(name)
    const made = classOf(copy)
    remembered.add(copy, made)
    return made
  }
}

const unusual = /[^0-9a-z-]/
const punctuation = /[^0-9a-z]/g

/**
 * Reads a name as CGI and WSGI do, which treat `-` and `_` alike. Some servers treat all punctuation this way (`X.Real.IP`), and a few were
 * found to decode escapes (`Transfer-%45ncoding`).
 */
function aliasOf(name: string): string {
  return unescape(name).toLowerCase().replaceAll(punctuation, '-')
}

/**
 * Java applications also look headers up by the names of CGI variables, such as `getHeader("HTTP_X_FORWARDED_FOR")` in Hutool's
 * `getClientIP`. To their servers, these are ordinary names.
 */
const variableOfCgi = /^http_/

function isSetByProxies(name: string): boolean {
  return trustedProxyPrefixes.some((prefix) => name.startsWith(prefix))
}

/**
 * Classifies headers of requests. If some backend takes a header for one that the gateway reads, the header is removed, no matter who wrote
 * it: it could contradict the decision.
 *
 * @param decisive lower-case names of further headers that decisions use, such as those that identify clients. `Connection` does not remove
 *   them. They are passed on from every client, as the value that was decided on, even if otherwise only a trusted proxy may send them
 * @param keepUnusual passes on names with characters other than letters, digits and `-`, unless such a name is an alias. nginx, too, drops
 *   names with `_` and other punctuation by default (`underscores_in_headers`, `ignore_invalid_headers`)
 * @param clientAddressHeader in which trusted proxies name their client, in lower case
 * @param own lower-case names of further headers that the gateway sets itself
 */
export function createRequestClassifier(
  decisive: readonly string[],
  keepUnusual: boolean,
  clientAddressHeader = 'x-forwarded-for',
  own: readonly string[] = [],
): RequestFieldClassifier {
  const roles = new Map<string, FieldRole>([
    ...references.map((name) => [name, 'reference'] as const),
    ...trustedProxyHeaders.map((name) => [name, 'trusted-proxy'] as const),
    ...decisive.map((name) => [name, 'decisive'] as const),
    [clientAddressHeader, 'client-address'],
    ...requestRoles,
    ...own.map((name) => [name, 'own'] as const),
  ])
  const aliased = new Set([...roles.keys(), ...methodOverrideFields])
  const decisiveAliases = new Set(decisive.map(aliasOf))
  const roleOfOther = (name: string): FieldRole => {
    if (!unusual.test(name)) {
      if (decisiveAliases.has(name)) return 'own'
      return isSetByProxies(name) ? 'trusted-proxy' : 'end-to-end'
    }
    if (!keepUnusual) return 'own'
    const alias = aliasOf(name.replace(variableOfCgi, ''))
    return aliased.has(alias) || decisiveAliases.has(alias) || isSetByProxies(alias) ? 'own' : 'end-to-end'
  }
  const readByRules = new Set([...decisive, ...methodOverrideFields])
  const aliasesOfRead = new Set([...readByRules].map(aliasOf))
  const isAlias = (name: string): boolean => !readByRules.has(name) && aliasesOfRead.has(aliasOf(name))
  return createClassifier(roles, roleOfOther, [...decisive, ...alwaysDecide], isAlias)
}

const responseRoles = new Map<string, FieldRole>([
  ...commonRoles,
  ['www-authenticate', 'connection-login'],
  // IIS uses it to say that it continues to attribute requests on this connection to its user.
  ['persistent-auth', 'connection-login'],
])

/** Returns the class of a response header by its lower-case name; undefined if the name is not a token. */
export const classifyResponseField = createClassifier(responseRoles, () => 'end-to-end')

/** The values of most messages that have the header, already parsed. */
const usualOptions = new Map(['keep-alive', 'close'].map((option) => [option, new Set([option])]))

/** The lower-case options of the `Connection` fields of a message (RFC 9110 section 7.6.1). */
export function connectionOptions(value: string): ReadonlySet<string> {
  return usualOptions.get(value) ?? new Set(value.split(',').map((option) => option.trim().toLowerCase()))
}
