import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { bodies } from '../wire/answers/bodies.ts'
import { heads } from '../wire/answers/heads.ts'
import { explained, explainedBesideHttpProxy } from '../differential/explained.ts'
import { vectorsByTheme } from '../wire/vectors.ts'

const root = join(import.meta.dirname, '../..')
const page = readFileSync(join(root, 'docs/http.md'), 'utf8')

const named = new Set(
  Object.entries({ ...vectorsByTheme, heads, bodies }).flatMap(([theme, vectors]) =>
    vectors.map(({ name }) => `${theme}: ${name}`),
  ),
)

/** The rows of all tables, without header rows. */
const rows = page
  .split('\n')
  .filter((line) => line.startsWith('|') && !/^\|[\s|-]+$/.test(line) && !/\| Test +\|$/.test(line))

test.each(rows)('%s has a test that is there', (row) => {
  const [, reference = ''] = /`([^`]+)`\s*\|$/.exec(row) ?? []
  expect(named.has(reference) || (reference.startsWith('test/') && existsSync(join(root, reference)))).toBe(
    true,
  )
})

test('the page of HTTP decisions has more than 80 rows', () => {
  expect(rows.length).toBeGreaterThan(80)
})

test('every explained difference belongs to an existing vector', () => {
  const keys = Object.keys({ ...explained, ...explainedBesideHttpProxy })
  expect(keys.filter((key) => !named.has(key))).toEqual([])
})
