import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { hashFiles } from '../../support/run/hash-files.ts'
import { makeTemporaryDirectory } from '../../support/run/temporary-directory.ts'

test('files have another hash after any change of a name or a content', () => {
  const root = makeTemporaryDirectory()
  const write = (path: string, text: string): void => writeFileSync(join(root, path), text)
  mkdirSync(join(root, 'proxy/http'), { recursive: true })
  write('lock.json', '{}')
  write('proxy/main.ts', 'a')
  write('proxy/http/head.ts', 'b')
  const hash = (): string => hashFiles(root, ['lock.json', 'proxy'])
  const seen = new Set([hash()])
  expect(hash()).toBe([...seen][0])

  write('other.ts', 'not one of them')
  expect(seen).toContain(hash())

  const changes = [
    () => write('lock.json', '{ }'),
    () => write('proxy/main.ts', 'A'),
    () => write('proxy/http/head.ts', 'bb'),
    () => write('proxy/http/table.json', ''),
    () => renameSync(join(root, 'proxy/http/table.json'), join(root, 'proxy/table.json')),
    () => rmSync(join(root, 'proxy/table.json')),
  ]
  const hashes = changes.map((change) => {
    change()
    return hash()
  })
  // The last change undoes the two before it.
  expect(hashes.at(-1)).toBe(hashes.at(2))
  for (const each of hashes.slice(0, -1)) seen.add(each)
  expect(seen.size).toBe(changes.length)
})

test('a copy in another folder has another hash, as bundles contain paths', () => {
  const [one, other] = [makeTemporaryDirectory(), makeTemporaryDirectory()]
  for (const root of [one, other]) writeFileSync(join(root, 'main.ts'), 'a')
  expect(hashFiles(one, ['main.ts'])).not.toBe(hashFiles(other, ['main.ts']))
})
