import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { runInNewContext } from 'node:vm'

/** One case of llhttp's suite: bytes, and the result of its parser. */
export type LlhttpCase = {
  readonly name: string
  /** The title, in llhttp's words. */
  readonly title: string
  /** Latin-1 text, one character a byte. */
  readonly bytes: string
  /** The number of complete messages that the parser found before it ended or failed. */
  readonly complete: number
  /** Whether the parser refuses the bytes, or those after the complete messages. */
  readonly isRefused: boolean
}

// The text between the two blocks is prose, and contains no other case.
const block = /<!--\s*meta=(\{.*?\})\s*-->\s*```http\n([\s\S]*?)```(?:(?!<!--)[\s\S])*?```log\n([\s\S]*?)```/g

/**
 * Reads the cases for the strict parser from a copy of llhttp's sources. Leaves out cases for lenient modes and for a parser that its
 * caller pauses.
 *
 * @param folder the root of the copy
 */
export function readLlhttpCases(folder: string, type: 'request' | 'response'): LlhttpCase[] {
  const cases: LlhttpCase[] = []
  const directory = join(folder, 'test', type)
  for (const file of readdirSync(directory).filter((name) => name.endsWith('.md'))) {
    const text = readFileSync(join(directory, file), 'utf8')
    for (const match of text.matchAll(block)) {
      const [, metaText = '{}', input = '', log = ''] = match
      const meta = JSON.parse(metaText) as Record<string, unknown>
      if (
        meta['type'] !== type ||
        meta['skip'] === true ||
        meta['pause'] !== undefined ||
        meta['skipBody'] === true
      )
        continue
      const line = text.slice(0, match.index).split('\n').length
      const error = /error code=(\d+)/.exec(log)
      const before = error ? log.slice(0, error.index) : log
      cases.push({
        name: `${type}/${file}:${line}`,
        title: titleBefore(text, match.index),
        bytes: readInput(input),
        complete: before.split('message complete').length - 1,
        // Errors 21 to 23 are pauses; an upgrade is one of them.
        isRefused: error !== null && !['21', '22', '23'].includes(error[1] ?? ''),
      })
    }
  }
  return cases
}

function titleBefore(text: string, at: number): string {
  return [...text.slice(0, at).matchAll(/^#+ (.*)$/gm)].at(-1)?.[1] ?? ''
}

/** Decodes the bytes of a case, as llhttp's own runner does: escapes, and pieces of JavaScript. */
function readInput(text: string): string {
  return text
    .replace(/\n$/, '')
    .replace(/\\(\r\n|\r|\n)/g, '')
    .replace(/\r\n|\r|\n/g, '\r\n')
    .replace(/\\r/g, '\r')
    .replace(/\\n/g, '\n')
    .replace(/\\t/g, '\t')
    .replace(/\\f/g, '\f')
    .replace(/\\x([0-9a-fA-F]+)/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
    .replace(/\\([0-7]{1,3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)))
    .replace(/\$\{(.+?)\}/g, (_, code: string) => String(runInNewContext(code)))
}
