import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const root = join(import.meta.dirname, '../..')
const pages = ['.', 'docs', 'docs/decisions', 'docs/how-to', 'docs/recipes'].flatMap((folder) =>
  readdirSync(join(root, folder))
    .filter((name) => name.endsWith('.md'))
    .map((name) => join(folder, name)),
)

test.each(pages)('every row in %s belongs to a table', (page) => {
  const lines = readFileSync(join(root, page), 'utf8').split('\n')
  const isRow = (at: number): boolean => lines[at]?.startsWith('|') ?? false
  const firstRows = lines.flatMap((_, at) => (isRow(at) && !isRow(at - 1) ? [at] : []))
  const withoutHead = firstRows.filter((at) => !/^\|(?: *:?-+:? *\|)+$/.test(lines[at + 1] ?? ''))
  expect(withoutHead.map((at) => lines[at])).toEqual([])
})
