import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const root = join(import.meta.dirname, '../..')
const page = readFileSync(join(root, 'docs/architecture.md'), 'utf8')

/** Folders whose every file the tree names. */
const listed = ['proxy', 'proxy/edge', 'proxy/limiter', 'proxy/upstream']

test.each(listed)('the tree in docs/architecture.md names the files of %s and no others', (folder) => {
  const files = readdirSync(join(root, folder)).filter((name) => name.endsWith('.ts'))
  const tree = page.slice(page.indexOf('## The tree'), page.indexOf('## The way of a request'))
  expect(files.filter((name) => !tree.includes(name))).toEqual([])
})

test('the tree names no file that is not there', () => {
  const tree = page.slice(page.indexOf('## The tree'), page.indexOf('## The way of a request'))
  const all = new Set(
    ['proxy', 'start.ts'].flatMap((place) =>
      place.endsWith('.ts')
        ? [place]
        : readdirSync(join(root, place), { recursive: true, encoding: 'utf8' }).map(
            (name) => name.split('/').at(-1) ?? '',
          ),
    ),
  )
  const named = tree.match(/[a-z0-9-]+\.ts\b/g) ?? []
  expect(named.filter((name) => !all.has(name))).toEqual([])
})
