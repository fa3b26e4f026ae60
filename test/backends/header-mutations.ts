import { disguise, pick, type Random } from './disguises.ts'
import { slash, word } from './grammar.ts'
import { routes } from './routes.ts'
import type { Spelling } from './spelling.ts'

// Headers with which some backend replaces the path, its prefix, or the method.

const prefixHeaders = [
  'SCRIPT_NAME',
  'X-Script-Name',
  'X-Forwarded-Prefix',
  'X-Forwarded-Path',
  'X-Forwarded-Context',
  'X-Forwarded-Script-Name',
  'X-Vhm-Root',
  'X-Ingress-Path',
  'X-Proxy-Prefix',
  'X-Base-Path',
] as const

const pathHeaders = [
  'X-Original-URL',
  'X-Rewrite-URL',
  'X-Original-URI',
  'X-Forwarded-URI',
  'X-Forwarded-URL',
  'X-Envoy-Original-Path',
  'PATH_INFO',
  'REQUEST_URI',
  'REDIRECT_URL',
  'UNENCODED_URL',
] as const

const methodHeaders = [
  'X-HTTP-Method-Override',
  'X-HTTP-Method',
  'X-Method-Override',
  'X-Forwarded-Method',
  'REQUEST_METHOD',
] as const

/** States in a header what the request line states, or contradicts it. */
export function mutateHeaders(random: Random, spelling: Spelling): Spelling {
  return pick(random, [addPrefix, addPrefix, replacePath, overrideMethod, overrideMethod, nameByConnection])(
    random,
    spelling,
  )
}

function addPrefix(random: Random, spelling: Spelling): Spelling {
  const prefix = pick(random, ['/', '', slash(random)]) + word(random)
  const value = pick(random, [prefix, prefix, `${prefix}/`, `http://localhost${prefix}`])
  const target =
    random() < 0.8 ? (prefix.startsWith('/') ? prefix : `/${prefix}`) + spelling.target : spelling.target
  return withHeader({ ...spelling, target }, respellName(random, pick(random, prefixHeaders)), value)
}

function replacePath(random: Random, spelling: Spelling): Spelling {
  const target = `/${pick(random, ['', word(random)])}`
  return withHeader({ ...spelling, target }, respellName(random, pick(random, pathHeaders)), spelling.target)
}

function overrideMethod(random: Random, spelling: Spelling): Spelling {
  const { method } = spelling
  const value = pick(random, [
    method,
    method.toLowerCase(),
    ` ${method}`,
    `${method}, ${word(random)}`,
    word(random),
  ])
  const sent = pick(random, [
    'GET',
    'POST',
    'PUT',
    'PATCH',
    'OPTIONS',
    ...routes.map((route) => route.method),
  ])
  return withHeader({ ...spelling, method: sent }, respellName(random, pick(random, methodHeaders)), value)
}

/** Asks the proxy to remove a header that it adds or reads itself. */
function nameByConnection(random: Random, spelling: Spelling): Spelling {
  const named = spelling.headers.map(([name]) => name)
  return withHeader(spelling, 'Connection', pick(random, ['close', 'X-Forwarded-For', 'Host', ...named]))
}

/** CGI and WSGI read `-` and `_` as the same character, some servers treat all punctuation alike, and some decode escapes. */
function respellName(random: Random, name: string): string {
  return pick<() => string>(random, [
    () => name,
    () => name,
    () => name.toLowerCase(),
    () => name.replaceAll(/[-_]/g, () => pick(random, ['-', '_'])),
    () => name.replaceAll(/[-_]/g, () => pick(random, ['-', '_', '.', '~', '!', '+', '*'])),
    () => name.replace(/[A-Z]/i, (letter) => disguise(random, letter).replace(/[^\x21-\x7e]/g, '')),
  ])()
}

function withHeader(spelling: Spelling, name: string, value: string): Spelling {
  return { ...spelling, headers: [...spelling.headers, [name, value]] }
}
