import { unescape } from 'node:querystring'

/**
 * What a proxy does with a field (RFC 9110 sections 5 and 7.6):
 *
 * - `end-to-end`: passed on as it is
 * - `hop-by-hop`: of this connection only, taken out
 * - `own`: ours to say; a client's is taken out
 * - `decisive`: a decision rests on its value; passed on as the one value that was decided on
 * - the others are read here and, where they are passed on, written anew
 */
export type FieldRole =
  | 'end-to-end'
  | 'hop-by-hop'
  | 'own'
  | 'connection'
  | 'content-length'
  | 'decisive'
  | 'cookie'
  | 'host'
  | 'keep-alive'
  | 'max-forwards'
  | 'transfer-encoding'
  | 'upgrade'
  | 'via'
  | 'x-forwarded-for'
  | 'x-forwarded-host'
  | 'x-forwarded-proto'
  | 'x-forwarded-other'

/** Gives the class of a request's field, or undefined where the spelling is no token (RFC 9110 section 5.6.2). */
export type RequestFieldClassifier = (spelling: string) => FieldClass | undefined

export type FieldClass = { readonly name: string; readonly role: FieldRole }

const hopByHop = [
  // Reserved, as it would be named by the option of that name (RFC 9110 section 16.3.1).
  'close',
  'proxy-connection',
  'proxy-authenticate',
  'proxy-authorization',
  'te',
  'trailer',
  'http2-settings',
] as const

const commonRoles = new Map<string, FieldRole>([
  ...hopByHop.map((name) => [name, 'hop-by-hop'] as const),
  ['connection', 'connection'],
  ['content-length', 'content-length'],
  ['keep-alive', 'keep-alive'],
  ['transfer-encoding', 'transfer-encoding'],
  ['upgrade', 'upgrade'],
])

// `Forwarded` and `X-Forwarded-Port` say the same as what is set here and would contradict it: they are never passed on.
// `X-Original-URL` and `X-Rewrite-URL` replace the path in some backends, behind the back of the rules.
const requestRoles = new Map<string, FieldRole>([
  ...commonRoles,
  ['cookie', 'cookie'],
  ['expect', 'hop-by-hop'],
  ['forwarded', 'own'],
  ['host', 'host'],
  ['max-forwards', 'max-forwards'],
  ['via', 'via'],
  ['x-forwarded-for', 'x-forwarded-for'],
  ['x-forwarded-host', 'x-forwarded-host'],
  ['x-forwarded-port', 'own'],
  ['x-forwarded-proto', 'x-forwarded-proto'],
  ['x-original-url', 'own'],
  ['x-real-ip', 'own'],
  ['x-request-id', 'own'],
  ['x-rewrite-url', 'own'],
])

/** Backends take the method from one of these when they are asked to. Rules are matched under it too. */
export const methodOverrideFields = ['x-http-method-override', 'x-http-method', 'x-method-override'] as const

const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
const maxRemembered = 1024

/** Classifies field names, remembering the spellings in use so that lower-casing and checking is done once for each. */
function createClassifier(
  roles: ReadonlyMap<string, FieldRole>,
  roleOfOther: (name: string) => FieldRole,
): (spelling: string) => FieldClass | undefined {
  const remembered = new Map<string, FieldClass>()
  return (spelling) => {
    const known = remembered.get(spelling)
    if (known) return known
    if (!token.test(spelling)) return undefined
    const name = spelling.toLowerCase()
    const made: FieldClass = { name, role: roles.get(name) ?? roleOfOther(name) }
    if (remembered.size < maxRemembered && spelling.length <= 64) remembered.set(spelling, made)
    return made
  }
}

/**
 * CGI and WSGI read `-` and `_` in a name as one, some servers every punctuation (`X.Real.IP`), and a few were found to
 * decode escapes (`Transfer-%45ncoding`). Of `X-Forwarded-Prefix` and the like a backend believes what a proxy says.
 */
function roleOfOther(name: string, aliased: ReadonlySet<string>): FieldRole {
  if (!unusual.test(name)) return name.startsWith(toldByProxies) ? 'x-forwarded-other' : 'end-to-end'
  const alias = unescape(name).toLowerCase().replaceAll(punctuation, '-')
  return aliased.has(alias) || alias.startsWith(toldByProxies) ? 'own' : 'end-to-end'
}

const toldByProxies = 'x-forwarded-'

const unusual = /[^0-9a-z-]/
const punctuation = /[^0-9a-z]/g

/**
 * A name that some backend takes for a field that is read here is taken out, whoever wrote it: it would contradict what
 * was decided.
 *
 * @param decisive lower-case names of further fields that decisions rest on, such as those that clients are told apart by
 */
export function createRequestClassifier(decisive: readonly string[]): RequestFieldClassifier {
  const roles = new Map([...decisive.map((name) => [name, 'decisive'] as const), ...requestRoles])
  const aliased = new Set([...roles.keys(), ...methodOverrideFields])
  return createClassifier(roles, (name) => roleOfOther(name, aliased))
}

/** The class of a response's field, or undefined where the spelling is no token. */
export const classifyResponseField = createClassifier(commonRoles, () => 'end-to-end')

/** What most messages say, if they say anything. */
const usualOptions = new Map(['keep-alive', 'close'].map((option) => [option, new Set([option])]))

/** The lower-case options of the `Connection` fields of a message (RFC 9110 section 7.6.1). */
export function connectionOptions(value: string): ReadonlySet<string> {
  return usualOptions.get(value) ?? new Set(value.split(',').map((option) => option.trim().toLowerCase()))
}
