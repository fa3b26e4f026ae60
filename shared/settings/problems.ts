import type { z } from 'zod'

/** The place of a value, with which a message begins: `PORT` or `sluice.yaml:4: port`. */
export type Place = {
  readonly label: string
  /** Line of the file, from 1; 0 for the environment. Problems are reported in this order. */
  readonly line: number
}

/** Returns the place of the value at a path of names and indexes. */
export type PlaceOf = (path: readonly PropertyKey[]) => Place

export type Problem = { readonly line: number; readonly text: string }

/** The raw values of the environment or a file, before any check. */
export type Source = {
  readonly given: Readonly<Record<string, unknown>>
  readonly placeOf: PlaceOf
  /** Shows the value that was given under a name, the first of the path. */
  readonly show: (name: string, value: unknown, path: readonly PropertyKey[]) => string
  /** Describes an unknown field, the last of the path, and suggests the sibling fields that were probably meant. */
  readonly problemOfUnknown: (
    path: readonly PropertyKey[],
  ) => Problem & { readonly suggested?: readonly string[] }
}

export function problemAt({ label, line }: Place, text: string): Problem {
  return { line, text: `${label}: ${text}` }
}

/**
 * Turns the schema's issues into problems with the place, the given value and the right form. An issue whose message begins with "needs"
 * is about a value; any other message is a sentence of its own.
 */
export function problemsOf(issues: readonly z.core.$ZodIssue[], source: Source): Problem[] {
  const all = issues.flatMap(innermost)
  const unknown = all.flatMap((issue) =>
    issue.code === 'unrecognized_keys'
      ? issue.keys.map((key) => ({ beside: issue.path, ...source.problemOfUnknown([...issue.path, key]) }))
      : [],
  )
  // Report a mistyped name as one mistake: the field that was meant does not count as missing, and the mapping as incomplete, too.
  const mistyped = new Set(
    unknown.flatMap(({ beside, suggested = [] }) => suggested.map((field) => [...beside, field].join('\n'))),
  )
  const incomplete = new Set(
    unknown.flatMap(({ beside, suggested = [] }) => (suggested.length > 0 ? [beside.join('\n')] : [])),
  )
  const others = all.flatMap((issue) => {
    const { code, path, message } = issue
    if (code === 'unrecognized_keys') return []
    if (code === 'custom' && incomplete.has(path.join('\n'))) return []
    const got = gotAt(path, source)
    if (got === missing && mistyped.has(path.join('\n'))) return []
    const text = message.startsWith('needs ') ? `${got}, ${message}` : message
    return problemAt(source.placeOf(path), text)
  })
  return [...others, ...unknown]
}

const missing = 'missing'

/** Whether the type of a value differs from a form, or from each form of a union. */
function isOther(form: readonly z.core.$ZodIssue[]): boolean {
  return form.some(
    (issue) =>
      issue.path.length === 0 &&
      (issue.code === 'invalid_type' || (issue.code === 'invalid_union' && issue.errors.every(isOther))),
  )
}

/** For a value that matches no form of a union, returns the issues of the form that was intended. */
function innermost(issue: z.core.$ZodIssue): z.core.$ZodIssue[] {
  if (issue.code !== 'invalid_union') return [issue]
  const intended = issue.errors.find((form) => !isOther(form))
  // No form was intended, so name all of them.
  if (!intended && issue.message.startsWith('needs ')) return [issue]
  const told = issue.errors.find((form) => form.some(({ message }) => message.startsWith('needs ')))
  return (intended ?? told ?? issue.errors[0] ?? []).flatMap((inner) =>
    innermost({ ...inner, path: [...issue.path, ...inner.path] }),
  )
}

function gotAt(path: readonly PropertyKey[], source: Source): string {
  let value: unknown = source.given
  for (const step of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return missing
    value = Reflect.get(value, step)
  }
  return `got ${source.show(String(path[0]), value, path)}`
}

/** Shows a value on one line. Strings are in quotes and safe to print on a terminal. */
export function showValue(value: unknown): string {
  if (value === null || value === undefined) return 'nothing'
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  if (typeof value === 'string') return printable(JSON.stringify(shorten(value)))
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : 'a list'
  return 'a mapping'
}

/** Truncates a text of any length to fit into a message. */
export function shorten(text: string): string {
  return text.length > 120 ? `${text.slice(0, 120)}…` : text
}

/** Puts a text on one line. Escapes, in JSON's notation, characters that would move a terminal's cursor or change the writing direction. */
export function printable(text: string): string {
  return text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (character) =>
    Array.from({ length: character.length }, (_, unit) => escaped(character.charCodeAt(unit))).join(''),
  )
}

function escaped(codeUnit: number): string {
  return `\\u${codeUnit.toString(16).padStart(4, '0')}`
}

/** The system's error message, without the path that it repeats. */
export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message.split(',', 1).join() : String(error)
}
