import { expect, test } from 'vitest'
import { createSystemLookup } from '../../../proxy/names/system-lookup.ts'
import { eventually } from '../../support/wait/eventually.ts'

test('getaddrinfo looks up one name at a time, whatever the result of the one before', async () => {
  const running: { readonly name: string; readonly end: (addresses?: readonly string[]) => void }[] = []
  const lookUp = createSystemLookup(
    (name) =>
      new Promise((resolve, reject) =>
        running.push({ name, end: (found) => (found ? resolve(found) : reject(new Error('no'))) }),
      ),
  )
  const names = ['a', 'b', 'c']
  const found = names.map((name) => lookUp(name).catch(() => 'none'))
  for (const [i, name] of names.entries()) {
    await eventually('the next name is looked up', () =>
      expect(running.map((each) => each.name)).toEqual(names.slice(0, i + 1)),
    )
    running[i]?.end(name === 'b' ? undefined : [name])
  }
  expect(await Promise.all(found)).toEqual([['a'], 'none', ['c']])
})
