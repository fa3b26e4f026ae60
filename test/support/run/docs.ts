import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The indented block of a page in `docs/` that begins so. */
export function commandsOf(page: string, beginning: string): string {
  const text = readFileSync(join(import.meta.dirname, '../../..', page), 'utf8')
  const [block] = text.slice(text.indexOf(`    ${beginning}`)).split('\n\n')
  if (!text.includes(`    ${beginning}`) || !block) throw new Error(`${page} has no commands "${beginning}"`)
  return block.replaceAll(/^ {4}/gm, '')
}
