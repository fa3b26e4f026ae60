import { comparable, decodedAgain, trimmed, withoutDropped } from './comparable-path.ts'
import { resolveNames } from './dot-segments.ts'
import { addSpellings, cuts, isNewText, type SpelledTexts } from './path-spellings.ts'
import { hasScript, scriptPaths, withoutExtensions } from './script-paths.ts'

/**
 * The form of a path that rules match. Segments are joined with `/`; letters are folded to lower case, and escapes except `%25` are
 * decoded. These texts must only be compared, never forwarded or decoded again.
 */
export type MatchPaths = {
  /** The path as the most lenient backend reads it: without empty segments, dot segments and, except for `/`, a trailing slash. */
  readonly matchPath: string
  /**
   * The different readings of other backends; usually the shared empty list. `/users//` stands for `/users/` with an empty name at its end,
   * which some routers match with `/users/:id`. Empty names in the middle occur, too.
   */
  readonly otherMatchPaths: readonly string[]
  /**
   * Readings that end before a dot of the last segment, except its last dot. Rules match them, but a `:name` at their end has no value,
   * because all names that begin with `anna.` would have the same one. The same holds for readings that end in one call of a batch, and
   * for those without the characters that some backends drop.
   */
  readonly shortened?: ReadonlySet<string> | undefined
}

/** The properties of a request on which the readings of its path depend. */
export type PathUse = {
  /**
   * Whether the last segment's extension may be a format, so that the path without it is equivalent. Not for GET, where it names another
   * file.
   */
  readonly hasFormat: boolean
  /** The path with dot segments, if the backend gets it unresolved. It is also read in every way of resolving them. */
  readonly unresolved?: string | undefined
  /** Whether the path may be a list of calls, with commas between them. */
  readonly isBatch?: boolean
}

export const noOtherMatchPaths: readonly string[] = Object.freeze([])

const ambiguous = /[;?#&\\]|%2f|%3b|%5c|%25[0-9a-f]{2}|\/[/ ]|[ .](?:\/|$)/
const delimiter = /[;?#&\\]|%3b|%5c|%25/
const slash = /\/|%2f|%5c|\\/
const control = /[\0-\x1f\x7f]/

/**
 * Bounds the work on a path with many readings, by their total length. A short path gets less than a long one, because a client can send
 * more short paths: 50 bytes are rejected after 0.3 ms, once V8 has compiled this, 8 KB after some milliseconds. A path of 24 bytes may
 * have dozens of readings, one of 1 KB hundreds.
 */
const MAX_WORK = 1 << 18
const MAX_WORK_OF_SHORTEST = 16 * 1024
const MAX_WORK_PER_BYTE = 160
/** Work units per spelling and per reading, in addition to their length. */
const WORK_OF_SPELLING = 64
const WORK_OF_READING = 16

const rootWithEmptyName: readonly string[] = Object.freeze(['//'])

export const controlCharacter = 'the path has a control character'
const climbs = 'the path climbs above the root'
const endless = 'the path can be read in too many ways'

/**
 * Reads a path in every way in which a backend may read it, so that no spelling of a limited path evades its rule. Backends differ in the
 * points that `addSpellings` and `scriptPaths` describe, and in the following ones. Each combination is a reading:
 *
 * - escapes are decoded once or twice;
 * - dot segments that decoding reveals (`..;x`, `..%2F`) are resolved, after merging slashes (Tomcat, nginx) or before (RFC 3986), or are
 *   text (WSGI, Express);
 * - slashes are merged; or there is an empty name between two slashes and after a trailing one, which a `:name` matches (find-my-way of
 *   Fastify and Restify); or a trailing slash is ignored;
 * - spaces, bytes that are not UTF-8, or all bytes beyond ASCII are dropped, or not (`withoutDropped`);
 * - spaces around a segment and dots at its end are ignored (Windows opens `login.` as `login`), or not;
 * - the last segment has an extension, possibly with dots in it, that is not part of its name (Rails, Spring, Symfony), or is part of it;
 * - the path ends in several names with commas between them, of which each is called (batches of tRPC), or in one.
 *
 * Every reading ignores letter case, folded as in Unicode and Python's `re.IGNORECASE` (`ſ`, `ı`, `K`).
 *
 * @param path every `%` in it begins an escape
 * @returns the readings, or the reason to reject the path: in some reading it climbs above the root, and would leave the upstream's prefix;
 * it has a control character, and could be several requests to a second server; or it has so many readings that it would cost too much
 */
export function readMatchPaths(path: string, use: PathUse): MatchPaths | string {
  const text = comparable(path)
  if (control.test(text)) return controlCharacter
  const kept = keptTexts(path, text)
  if (use.unresolved === undefined && !use.isBatch && isPlain(text) && kept.every(isPlain))
    return kept.length === 0
      ? plainMatchPaths(text, use.hasFormat)
      : readPlain([text, ...kept], use.hasFormat)
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
    isBatch: use.isBatch ?? false,
  }
  let mistake = addDecodings(found, text)
  if (use.unresolved !== undefined)
    mistake ??= addDecodings({ ...found, mayClimb: true }, comparable(use.unresolved))
  if (kept.length > 0) mistake ??= addKept({ ...found, mayClimb: true }, kept)
  if (mistake !== undefined) return mistake
  const [matchPath = '/', ...otherMatchPaths] = found.readings
  return { matchPath, otherMatchPaths, shortened: unlessEmpty(found.shortened) }
}

function unlessEmpty(readings: ReadonlySet<string>): ReadonlySet<string> | undefined {
  return readings.size > 0 ? readings : undefined
}

/** Returns the path without the characters that some backends drop. */
function keptTexts(path: string, text: string): readonly string[] {
  const kept = withoutDropped(path)
  if (kept === path && !text.includes('\ufffd')) return noTexts
  return [...new Set([comparable(kept), text.replaceAll('\ufffd', '')])].filter((each) => each !== text)
}

const noTexts: readonly string[] = []

function isPlain(text: string): boolean {
  return !ambiguous.test(text) && !hasScript.test(text)
}

/** @param texts the path, then texts that lack characters of it */
function readPlain(texts: readonly string[], hasFormat: boolean): MatchPaths {
  const read = texts.map((text) => plainMatchPaths(text, hasFormat))
  const readings = new Set(read.flatMap((each) => [each.matchPath, ...each.otherMatchPaths]))
  const [own] = read
  const whole = new Set(own && [own.matchPath, ...own.otherMatchPaths]).difference(
    own?.shortened ?? new Set(),
  )
  const [matchPath = '/', ...otherMatchPaths] = readings
  return { matchPath, otherMatchPaths, shortened: unlessEmpty(readings.difference(whole)) }
}

type Found = {
  readonly readings: Set<string>
  readonly spelled: SpelledTexts
  /** Spellings whose readings have been added. */
  readonly read: SpelledTexts
  /** Paths, joined from names, whose readings have been added. */
  readonly named: Set<string>
  readonly shortened: Set<string>
  workLeft: number
  readonly mayClimb: boolean
  readonly hasFormat: boolean
  readonly isBatch: boolean
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

/** Adds the readings of texts that lack characters of the path. */
function addKept(found: Found, texts: readonly string[]): string | undefined {
  const whole = found.readings.difference(found.shortened)
  for (const text of texts) {
    for (const decoding of [text, ...cuts(text).map(decodedAgain)]) {
      const mistake = addReadingsOfOne(found, decoding)
      if (mistake !== undefined) return mistake
    }
  }
  for (const reading of found.readings) if (!whole.has(reading)) found.shortened.add(reading)
  return undefined
}

function addReadings(found: Found, text: string): string | undefined {
  const mistake = addReadingsOfOne(found, text)
  if (mistake !== undefined || !delimiter.test(text)) return mistake
  // After one server has decoded the path and resolved its dot segments, a second server does the same, and everything else.
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

/** Adds the readings of a path by one server. */
function addReadingsOfOne(found: Found, text: string): string | undefined {
  /** Whether each spelling may climb above the root. */
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
  return found.isBatch && found.workLeft < 0 ? endless : undefined
}

/** Whether a path ends in a slash, or in a segment that resolves to a slash. */
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
    if (found.isBatch) addCalls(found, path)
    if (!hasScript.test(path)) continue
    for (const other of scriptPaths(path.slice(1).split('/'))) {
      const reading = joined(other)
      addReading(found, reading)
      addFormatless(found, reading)
    }
  }
}

/** Adds the path as read by a backend that does not merge slashes. */
function addWithEmptyNames(found: Found, segments: readonly string[]): void {
  for (const names of [segments, resolveNames(segments) ?? segments]) {
    const path = `/${names.join('/')}`
    addReading(found, path.endsWith('/') ? `${path}/` : path)
  }
}

function addFormatless(found: Found, path: string): void {
  const [usual, ...shortened] = found.hasFormat ? withoutExtensions(path) : []
  if (usual !== undefined) addReading(found, usual)
  for (const reading of shortened) addShortened(found, reading)
}

/**
 * Adds the paths that tRPC calls for `/trpc/auth.login,auth.login`. Names may have slashes in them, so any segment before the first comma
 * may be where the names begin.
 */
function addCalls(found: Found, path: string): void {
  const comma = path.indexOf(',')
  if (comma === -1) return
  const names = new Set(path.slice(comma + 1).split(','))
  names.delete('')
  addShortened(found, path.slice(0, comma))
  for (
    let end = path.lastIndexOf('/', comma);
    end !== -1;
    end = end === 0 ? -1 : path.lastIndexOf('/', end - 1)
  )
    for (const name of names) {
      if (found.workLeft < 0) return
      addShortened(found, `${path.slice(0, end + 1)}${name}`)
    }
}

function addShortened(found: Found, reading: string): void {
  found.workLeft -= WORK_OF_READING + reading.length
  if (found.readings.has(reading)) return
  found.readings.add(reading)
  found.shortened.add(reading)
}

function addReading(found: Found, reading: string): void {
  found.workLeft -= WORK_OF_READING + reading.length
  found.readings.add(reading)
  found.shortened.delete(reading)
}

/** Returns the readings of a folded path in which only a trailing slash or an extension can be read in several ways. */
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

/** @param path has no trailing slash, unless it is `/` */
function withEmptyName(path: string): string {
  return path === '/' ? '//' : `${path}//`
}

/** @returns the path without the empty name at its end; undefined if it has none */
export function withoutEmptyName(path: string): string | undefined {
  if (!path.endsWith('//')) return undefined
  return path === '//' ? '/' : path.slice(0, -2)
}

function joined(segments: readonly string[]): string {
  return `/${segments.filter((segment) => segment !== '').join('/')}`
}
