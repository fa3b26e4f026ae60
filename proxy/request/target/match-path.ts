import { comparable, decodedAgain, trimmed } from './comparable-path.ts'
import { resolveNames } from './dot-segments.ts'
import { addSpellings, cuts, isNewText, type SpelledTexts } from './path-spellings.ts'
import { hasScript, scriptPaths, withoutExtensions } from './script-paths.ts'

/**
 * The form of a path that rules match. Segments are joined with `/`; letters are folded to lower case and escapes are decoded
 * (not `%25`), so this is text to compare and look up, never to forward or to decode again.
 */
export type MatchPaths = {
  /** The path as the most lenient backend reads it. No empty and no dot segments; no slash at the end but of `/`. */
  readonly matchPath: string
  /**
   * The readings of other backends, where they differ; mostly the shared empty list. `/users//` is `/users/` with an empty name at its
   * end, which some routers take for `/users/:id`; an empty name in the middle is one too.
   */
  readonly otherMatchPaths: readonly string[]
  /**
   * Readings that end before a dot of the last segment other than its last one. Rules match them, but a `:name` at their end has no value
   * there: all names that begin with `anna.` would be one.
   */
  readonly shortened?: ReadonlySet<string> | undefined
}

/** How a path came, as far as its readings depend on it. */
export type PathUse = {
  /**
   * Whether an extension of the last segment may be a format, and the path the same without it: not with GET, where it names
   * another file.
   */
  readonly hasFormat: boolean
  /** The path as the backend gets it, where that is with dot segments: it is read in all ways of resolving them too. */
  readonly unresolved?: string | undefined
}

export const noOtherMatchPaths: readonly string[] = Object.freeze([])

const ambiguous = /[;?#&\\]|%2f|%3b|%5c|%25[0-9a-f]{2}|\/[/ ]|[ .](?:\/|$)/
const delimiter = /[;?#&\\]|%3b|%5c|%25/
const slash = /\/|%2f|%5c|\\/
const control = /[\0-\x1f\x7f]/

/**
 * Bounds the work on a path with many readings, by the length of all of them. A short path may take less of it than a long one, as a
 * client can send more of them: 50 bytes are refused after 0.3 ms, once V8 has compiled this, 8 KB after some milliseconds. A path of
 * 24 bytes may have dozens of readings, one of 1 KB hundreds.
 */
const MAX_WORK = 1 << 18
const MAX_WORK_OF_SHORTEST = 16 * 1024
const MAX_WORK_PER_BYTE = 160
/** Work units of a spelling and of a reading, in addition to their length. */
const WORK_OF_SPELLING = 64
const WORK_OF_READING = 16

const rootWithEmptyName: readonly string[] = Object.freeze(['//'])

export const controlCharacter = 'the path has a control character'
const climbs = 'the path climbs above the root'
const endless = 'the path can be read in too many ways'

/**
 * Reads a path in every way in which a backend may read it, so that no spelling of a limited path slips by. Backends differ in
 * what `addSpellings` and `scriptPaths` say, and each combination of it with these is a reading:
 *
 * - escapes are decoded once, or twice;
 * - dot segments that appear only now (`..;x`, `..%2F`) are resolved, after merging slashes (Tomcat, nginx) or before
 *   (RFC 3986), or are text (WSGI, Express);
 * - slashes are merged, or an empty name stands between two and after one at the end, which a `:name` takes (find-my-way of
 *   Fastify and Restify); or a slash at the end is ignored;
 * - spaces around a segment and dots at its end are ignored (Windows opens `login.` as `login`) or not;
 * - the last segment has an extension, of which a dot may be part, that is not part of its name (Rails, Spring, Symfony), or that is.
 *
 * Letter case is ignored in every reading, as Unicode and Python's `re.IGNORECASE` fold it (`ſ`, `ı`, `K`).
 *
 * @param path every `%` in it begins an escape
 * @returns the readings, or the reason to reject the path: one that climbs above the root in some reading would leave the
 * upstream's prefix there, one with a control character could be several requests to a second server, and one of very many
 * readings would cost too much
 */
export function readMatchPaths(path: string, use: PathUse): MatchPaths | string {
  const text = comparable(path)
  if (control.test(text)) return controlCharacter
  const isPlain = !ambiguous.test(text) && !hasScript.test(text)
  if (isPlain && use.unresolved === undefined) return plainMatchPaths(text, use.hasFormat)
  if (control.test(decodedAgain(text))) return controlCharacter
  const found: Found = {
    readings: new Set(),
    spelled: new Map(),
    read: new Map(),
    named: new Set(),
    workLeft: Math.min(MAX_WORK, MAX_WORK_OF_SHORTEST + MAX_WORK_PER_BYTE * path.length),
    shortened: new Set(),
    mayClimb: false,
    hasFormat: use.hasFormat,
  }
  let mistake = addDecodings(found, text)
  if (use.unresolved !== undefined)
    mistake ??= addDecodings({ ...found, mayClimb: true }, comparable(use.unresolved))
  if (mistake !== undefined) return mistake
  const [matchPath = '/', ...otherMatchPaths] = found.readings
  return { matchPath, otherMatchPaths, shortened: found.shortened }
}

type Found = {
  readonly readings: Set<string>
  readonly spelled: SpelledTexts
  /** Spellings whose readings have been added. */
  readonly read: SpelledTexts
  /** Paths of names whose readings have been added. */
  readonly named: Set<string>
  readonly shortened: Set<string>
  workLeft: number
  readonly mayClimb: boolean
  readonly hasFormat: boolean
}

/** @returns the reason to reject the path */
function addDecodings(found: Found, text: string): string | undefined {
  const mistake = addReadings(found, text)
  if (mistake !== undefined || !text.includes('%25')) return mistake
  for (const cut of cuts(text)) {
    const failed = addReadings(found, decodedAgain(cut))
    if (failed !== undefined) return failed
  }
  return undefined
}

function addReadings(found: Found, text: string): string | undefined {
  const mistake = addReadingsOfOne(found, text)
  if (mistake !== undefined || !delimiter.test(text)) return mistake
  // Behind a server that has decoded the path and resolved its dot segments, another one does the same and the rest.
  const segments = text.slice(1).split(slash)
  if (!segments.includes('..') && !segments.includes('.')) return undefined
  for (const names of [segments.filter((name) => name !== ''), segments]) {
    const resolved = resolveNames(names)
    if (!resolved) continue
    const path = joined(resolved)
    const failed = addReadingsOfOne(found, path) ?? addReadingsOfOne(found, decodedAgain(path))
    if (failed !== undefined) return failed
  }
  return undefined
}

/** Adds how one server may read a path. */
function addReadingsOfOne(found: Found, text: string): string | undefined {
  /** By spelling, whether one may climb above the root. */
  const spellings: SpelledTexts = new Map()
  addSpellings(text, found.spelled, (spelling, isRelative) => {
    found.workLeft -= WORK_OF_SPELLING + spelling.length
    const mayClimb = isRelative || found.mayClimb
    if (isNewText(found.read, spelling, mayClimb)) spellings.set(spelling, mayClimb)
  })
  for (const [spelling, mayClimb] of spellings) {
    if (found.workLeft < 0) return endless
    const segments = spelling.slice(1).split('/')
    const names = segments.filter((segment) => segment !== '')
    found.workLeft -= 3 * (spelling.length + 4 * segments.length)
    for (const reading of hasDotSegment(names)
      ? [resolveNames(names), resolveNames(segments), names]
      : [names]) {
      if (reading) addNames(found, reading, isDirectory(segments))
      else if (!mayClimb) return climbs
    }
    if (spelling.includes('//')) addWithEmptyNames(found, segments)
  }
  return undefined
}

/** Whether a path ends in a slash, or in a segment that resolves to one. */
function isDirectory(segments: readonly string[]): boolean {
  return /^\.{0,2}$/.test(segments.at(-1) ?? '')
}

function hasDotSegment(names: readonly string[]): boolean {
  return names.includes('..') || names.includes('.')
}

function addNames(found: Found, segments: readonly string[], endsInSlash: boolean): void {
  const bare = segments.map(trimmed).filter((name) => name !== '')
  const names = segments.filter((name) => name !== '')
  for (const path of [joined(bare), joined(names)]) {
    const isNew = !found.named.has(path)
    if (isNew) addReading(found, path)
    if (endsInSlash) addReading(found, withEmptyName(path))
    if (!isNew) continue
    found.named.add(path)
    addFormatless(found, path)
    if (!hasScript.test(path)) continue
    for (const other of scriptPaths(path.slice(1).split('/'))) {
      const reading = joined(other)
      addReading(found, reading)
      addFormatless(found, reading)
    }
  }
}

/** The path as a backend that does not merge slashes reads it. */
function addWithEmptyNames(found: Found, segments: readonly string[]): void {
  for (const names of [segments, resolveNames(segments) ?? segments]) {
    const path = `/${names.join('/')}`
    addReading(found, path.endsWith('/') ? `${path}/` : path)
  }
}

function addFormatless(found: Found, path: string): void {
  const [usual, ...shortened] = found.hasFormat ? withoutExtensions(path) : []
  if (usual !== undefined) addReading(found, usual)
  for (const reading of shortened) {
    found.workLeft -= WORK_OF_READING + reading.length
    if (found.readings.has(reading)) continue
    found.readings.add(reading)
    found.shortened.add(reading)
  }
}

function addReading(found: Found, reading: string): void {
  found.workLeft -= WORK_OF_READING + reading.length
  found.readings.add(reading)
  found.shortened.delete(reading)
}

/** Returns the readings of a path, already folded, in which only a slash or an extension at the end can be read in several ways. */
export function plainMatchPaths(path: string, hasFormat: boolean): MatchPaths {
  if (path === '/') return { matchPath: path, otherMatchPaths: rootWithEmptyName, shortened: undefined }
  const isDirectory = path.endsWith('/')
  const matchPath = isDirectory ? path.slice(0, -1) : path
  const formatless = hasFormat ? withoutExtensions(matchPath) : noOtherMatchPaths
  return {
    matchPath,
    otherMatchPaths: isDirectory ? [withEmptyName(matchPath), ...formatless] : formatless,
    shortened: formatless.length > 1 ? new Set(formatless.slice(1)) : undefined,
  }
}

/** @param path without a slash at the end, but the only one */
function withEmptyName(path: string): string {
  return path === '/' ? '//' : `${path}//`
}

/** @returns the path, where an empty name has been put at its end, and else undefined */
export function withoutEmptyName(path: string): string | undefined {
  if (!path.endsWith('//')) return undefined
  return path === '//' ? '/' : path.slice(0, -2)
}

function joined(segments: readonly string[]): string {
  return `/${segments.filter((segment) => segment !== '').join('/')}`
}
