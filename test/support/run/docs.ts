import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The steps that a reader of a page takes, in order. */
export type Step =
  | { readonly kind: 'file'; readonly name: string; readonly text: string }
  /** `output` is the command's output according to the page. */
  | { readonly kind: 'command'; readonly command: string; readonly output: string }
  /** Log lines that appear without a command. */
  | { readonly kind: 'log'; readonly output: string }

function readPage(page: string): string {
  return readFileSync(join(import.meta.dirname, '../../..', page), 'utf8')
}

/** The indented block of a page in `docs/` that begins with `beginning`. */
export function commandsOf(page: string, beginning: string): string {
  const text = readPage(page)
  const [block] = text.slice(text.indexOf(`    ${beginning}`)).split('\n\n')
  if (!text.includes(`    ${beginning}`) || !block) throw new Error(`${page} has no commands "${beginning}"`)
  return block.replaceAll(/^ {4}/gm, '')
}

/**
 * Returns the YAML blocks that begin with a file's name, the commands after `$ ` with their output, and the blocks of log lines. An
 * indented block without a command is further output of the command before it if only an empty line is between them.
 */
export function stepsOf(page: string): Step[] {
  const blocks = readPage(page).matchAll(/^```yaml\n# (\S+\.yaml)\n([^]*?)^```|(?:^(?: {4}.*)?\n)+/gm)
  return [...blocks].flatMap(([block, name, text = '']): Step[] => {
    if (name !== undefined) return [{ kind: 'file', name, text }]
    const lines = block.replaceAll(/^ {4}/gm, '').trim()
    if (/^\[[\d:.]+\] /.test(lines)) return [{ kind: 'log', output: lines }]
    return lines
      .split(/^\$ /m)
      .slice(1)
      .map((each) => {
        const [, command = '', output = ''] = /^((?:.*\\\n)*.*)\n?([^]*)$/.exec(each) ?? []
        return { kind: 'command', command, output: output.trim() }
      })
  })
}

/** Replaces everything that differs between runs by a word: times, dates, ids, hashes, and the widths of columns. */
export function withoutChance(text: string): string {
  return text
    .replaceAll('\r', '')
    .replaceAll(/\b\w{3}, \d\d \w{3} \d{4} [\d:]+ GMT/g, 'DATE')
    .replaceAll(/\b[\da-f]{8}-[\da-f-]{27}\b/g, 'ID')
    .replaceAll(/\b(?:\d+[dhms] )?\d+[dhms]\b/g, 'TIME')
    .replaceAll(/((?:retry-after: |;t=))\d+/g, '$1SECONDS')
    .replaceAll(/\b(?=[\da-f]*\d)[\da-f]{12}\b/g, 'HASH')
    .replaceAll(/ {2,}/g, '  ')
    .trim()
}
