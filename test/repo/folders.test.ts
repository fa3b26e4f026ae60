import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const root = join(import.meta.dirname, '../..')

function filesIn(folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name }) => name)
}

const folders = readdirSync(join(root, 'proxy'), { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map((entry) => join(entry.parentPath, entry.name).slice(root.length + 1))

test('the gateway has few files in its root, and no folder of it has more than 15 entries', () => {
  expect(filesIn('proxy').length).toBeLessThanOrEqual(3)
  expect(folders.length).toBeGreaterThan(10)
  for (const folder of ['proxy', ...folders])
    expect(readdirSync(join(root, folder)).length, folder).toBeLessThanOrEqual(15)
})

test('docs/architecture.md describes each folder', () => {
  const page = readFileSync(join(root, 'docs/architecture.md'), 'utf8')
  const tree = page.slice(page.indexOf('## The folders'), page.indexOf('<!-- generated'))
  const named = [...tree.matchAll(/^ {6}([a-z0-9]+)\/ /gm)].map(([, name]) => name)
  const there = folders
    .filter((folder) => folder.split('/').length === 2)
    .map((folder) => folder.slice('proxy/'.length))
  expect(named.toSorted()).toEqual(there.toSorted())
})

test('servers are made in the composition root only', () => {
  const sources = folders.flatMap((folder) => filesIn(folder).map((name) => join(folder, name)))
  const makers = sources.filter((file) =>
    /\b(?:createServer|createSecureServer)\(/.test(readFileSync(join(root, file), 'utf8')),
  )
  expect(makers.filter((file) => !file.startsWith('proxy/app/'))).toEqual([])
})
