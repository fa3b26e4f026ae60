import { resolveDotSegments } from './dot-segments.ts'

const delimiters = [/[?#]/, /&/]
const parameter = /;[^/]*/g
const parameterOrEscaped = /(?:;|%3b)[^/]*/g
const fromParameter = /;[^]*/
const fromParameterOrEscaped = /(?:;|%3b)[^]*/
/** A host in a path, with or without a scheme. Browsers skip additional slashes; RFC 3986 reads an empty host between them. */
const authorities = [/\/\/+[^/]*/, /\/[a-z][a-z0-9+.-]*:\/\/+[^/]*/, /\/[a-z][a-z0-9+.-]*:\/\/[^/]*/]

type AddSpelling = (spelling: string, isRelative: boolean) => void

/** The texts that have been processed, and whether each was only a relative path, which may climb above the root. */
export type SpelledTexts = Map<string, boolean>

/**
 * Records a text, and returns whether it has to be processed, because it is new, or was only a relative path so far. Different chains of
 * servers often turn a path into the same text.
 */
export function isNewText(known: SpelledTexts, text: string, isRelative: boolean): boolean {
  const before = known.get(text)
  if (before === false || (before === true && isRelative)) return false
  known.set(text, isRelative)
  return true
}

/**
 * Adds every form that a server may give a path before it splits the path into segments. Servers differ in these points, and each
 * combination is a spelling:
 *
 * - `%2F` separates segments (WSGI, nginx), or is text (Express); `\` and `%5C` both separate segments (IIS), or only `\` does (WHATWG's
 *   URL), or neither;
 * - `%3F` and `%23` are text, or end the path if a server writes the decoded path into a new request (nginx's `proxy_pass http://app$uri`;
 *   mod_rewrite before CVE-2024-38474);
 * - `&` is text, or ends the path if a rewrite rule turns the path into a parameter (`index.php?url=$1`);
 * - `;parameters` are dropped before decoding (Tomcat, Jetty), or after it, so that `%3B` begins them and `%2F` ends them, too; or only
 *   those of the last segment are dropped (Python's `urlparse`); or the first one ends the path (find-my-way of Fastify 4 and Restify, and
 *   Puma's parser); or they are text (Express);
 * - the text after `//` is a host (`new URL(path, base)`, Python's `urlsplit`), with or without a scheme before it; or it is a name.
 *
 * @param text a result of `comparable`
 * @param known texts of the same path whose spellings have already been added
 * @param add called with each spelling, with `/` as the separator; the most lenient one comes first, and some are repeated. `isRelative`:
 *   the path is resolved against the path of a URL, so that `..` cannot lead above the root
 */
export function addSpellings(text: string, known: SpelledTexts, add: AddSpelling): void {
  for (const separated of separations(text)) {
    addCuts(separated, false, known, add)
    for (const path of withoutAuthorities(separated)) addCuts(path, true, known, add)
  }
  for (const path of withoutAuthorities(text))
    for (const separated of separations(path)) addCuts(separated, true, known, add)
  if (!text.includes(';') && !text.includes('%3b')) return
  for (const cut of cuts(text)) {
    const undecoded = [
      cut.replace(parameterOrEscaped, ''),
      cut.replace(parameter, ''),
      withoutLastParameters(cut, fromParameter),
    ]
    for (const path of undecoded) for (const separated of separations(path)) add(separated, false)
  }
}

function addCuts(text: string, isRelative: boolean, known: SpelledTexts, add: AddSpelling): void {
  for (const cut of cuts(text))
    if (isNewText(known, cut, isRelative)) addParameterReadings(cut, isRelative, add)
}

function separations(text: string): Iterable<string> {
  const hasSlash = text.includes('%2f')
  if (!text.includes('\\') && !text.includes('%5c'))
    return hasSlash ? [text.replaceAll('%2f', '/'), text] : [text]
  const raw = text.replaceAll('\\', '/')
  const all = raw.replaceAll('%5c', '/')
  const texts = [all, raw, text].map((path) => path.replaceAll('%5c', '\\'))
  return new Set(hasSlash ? [...texts.map((path) => path.replaceAll('%2f', '/')), ...texts] : texts)
}

/** Returns a path, and its parts before each delimiter that may end it. */
export function cuts(text: string): string[] {
  const found = [text]
  for (const delimiter of delimiters) {
    const at = text.search(delimiter)
    if (at !== -1) found.push(text.slice(0, at))
  }
  return found
}

function withoutAuthorities(text: string): Iterable<string> {
  if (!text.includes('//')) return []
  const paths = authorities.map((before) => text.replace(before, '') || '/')
  return new Set([...paths, ...paths.map(resolveDotSegments)])
}

function addParameterReadings(text: string, isRelative: boolean, add: AddSpelling): void {
  if (!text.includes(';') && !text.includes('%3b')) return add(text, isRelative)
  add(text.replace(parameterOrEscaped, ''), isRelative)
  add(text.replace(parameter, ''), isRelative)
  add(text, isRelative)
  add(text.replace(fromParameterOrEscaped, ''), isRelative)
  add(text.replace(fromParameter, ''), isRelative)
  add(withoutLastParameters(text, fromParameter), isRelative)
  add(withoutLastParameters(text, fromParameterOrEscaped), isRelative)
}

/** Removes the last segment's parameters in two steps, because a single expression would restart at each of thousands of `;`. */
function withoutLastParameters(text: string, parameters: RegExp): string {
  const lastSegment = text.lastIndexOf('/') + 1
  return text.slice(0, lastSegment) + text.slice(lastSegment).replace(parameters, '')
}
