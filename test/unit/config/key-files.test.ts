import { hash } from 'node:crypto'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readKeys, warnOfUntriedKeys } from '../../../proxy/config/checks/key-files.ts'
import { makeTemporaryDirectory } from '../../support/run/temporary-directory.ts'

const placeOf = (path: readonly PropertyKey[]) => ({ label: path.join('.'), line: 1 })

// A renewal of the keys may replace the file, or remove it for a moment, at any time.
test('the file of a key set is read once: for its check, its digest and the warnings', () => {
  const folder = makeTemporaryDirectory()
  const path = join(folder, 'jwks.json')
  const content = JSON.stringify({ keys: Array.from({ length: 2 }, () => ({ kty: 'EC', crv: 'P-521' })) })
  writeFileSync(path, content)
  const place = { kind: 'file', path: 'jwks.json' } as const
  const read = readKeys({ place, issuer: 'i', audience: undefined }, placeOf, folder)
  rmSync(path)
  const digest = hash('sha256', content)
  expect(read).toEqual({
    jwt: { place: { kind: 'file', path, digest }, issuer: 'i', audience: undefined },
    keySet: content,
    problems: [],
  })
  expect(warnOfUntriedKeys(content, placeOf(['jwt', 'jwksFile']))).toEqual([
    expect.stringContaining('jwt.jwksFile: 1 of its keys (P-521) without a kid'),
  ])
})

test.each(['{"keys":[]}', '{"keys":[5,null]}', '[]', '{}'])('%s is no key set', (content) => {
  const folder = makeTemporaryDirectory()
  writeFileSync(join(folder, 'jwks.json'), content)
  const place = { kind: 'file', path: 'jwks.json' } as const
  expect(readKeys({ place, issuer: 'i', audience: undefined }, placeOf, folder).problems).toMatchObject([
    { text: expect.stringContaining('needs an object with a list of keys') as string },
  ])
})
