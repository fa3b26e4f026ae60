import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createRequestClassifier, classifyResponseField } from '../../../../proxy/http/fields/header-roles.ts'
import { readFieldLine } from '../../../../proxy/http/http1/parser/field-line.ts'
import { Remembered } from '../../../../proxy/http/message/remembered.ts'
import { usualNames } from '../../../../proxy/http/message/usual-names.ts'

/*
 * The attack: names that nobody uses, until a table of names is full of them. The entries of the names in use then have to be
 * found out again with each request, for ever.
 */

const classify = createRequestClassifier([], true)

/** Each gives an object of its own where it does not remember the name. */
const readers: Record<string, (name: string) => unknown> = {
  'a line of a request': (name) => {
    const names: NonNullable<Parameters<typeof readFieldLine>[4]> = []
    readFieldLine(`${name}: a`, 0, name.length + 3, [], names)
    return names[0]
  },
  'the class of a header': classify,
  'the class of a header of a response': classifyResponseField,
}

let others = 0

function flood(read: (name: string) => unknown, count: number): void {
  for (let i = 0; i < count; i++) read(`x-${others++}-of-nobody`)
}

test.each(Object.keys(readers))('%s: the names in use are remembered behind a flood of others', (what) => {
  const read = readers[what] ?? classify
  flood(read, 33_000)
  for (const name of usualNames) expect(read(name), name).toBe(read(name))
  // One of its own is known again after some requests, and stays known while others come.
  for (let i = 0; i < 16; i++) read('X-Own-Name')
  const own = read('X-Own-Name')
  expect(read('X-Own-Name')).toBe(own)
  for (let i = 0; i < 100; i++) {
    flood(read, 100)
    expect(read('X-Own-Name')).toBe(own)
  }
})

test('the cache never exceeds its size, and never returns the value of another text', () => {
  const texts = fc.array(fc.integer({ min: 0, max: 40 }).map(String), { maxLength: 400 })
  fc.assert(
    fc.property(texts, (asked) => {
      const remembered = new Remembered<string>(8, 2, [['usual', 'USUAL']])
      for (const text of asked) {
        const known = remembered.find(text)
        expect([undefined, `value of ${text}`]).toContain(known)
        if (known === undefined) remembered.add(text, `value of ${text}`)
        expect(remembered.find('usual')).toBe('USUAL')
      }
      const all = Array.from({ length: 41 }, (_, i) => String(i))
      // A lookup makes no room for an unknown text.
      expect(all.filter((text) => remembered.find(text) !== undefined).length).toBeLessThanOrEqual(8)
    }),
  )
})

test('the cache ignores texts that are too long', () => {
  const remembered = new Remembered<number>(8, 3)
  remembered.add('four', 4)
  remembered.add('two', 2)
  expect([remembered.find('four'), remembered.find('two')]).toEqual([undefined, 2])
})
