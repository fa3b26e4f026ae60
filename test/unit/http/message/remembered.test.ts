import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createRequestClassifier, classifyResponseField } from '../../../../proxy/http/fields/header-roles.ts'
import { readFieldName, usualNames, usualSpellings } from '../../../../proxy/http/fields/field-names.ts'
import { Remembered } from '../../../../proxy/http/message/remembered.ts'

/*
 * The attack: invented names fill a table of names. The entries of the names in use must then be computed again for each request,
 * permanently.
 */

const classify = createRequestClassifier([], true)

/** Each reader returns a new object if it does not remember the name. */
const readers: Record<string, { read: (name: string) => unknown; usual: readonly string[]; own: string }> = {
  'a name': { read: readFieldName, usual: usualSpellings, own: 'X-Own-Name' },
  'the class of a header': { read: classify, usual: usualNames, own: 'x-own-name' },
  'the class of a header of a response': {
    read: classifyResponseField,
    usual: usualNames,
    own: 'x-own-name',
  },
}

let others = 0

function flood(read: (name: string) => unknown, count: number): void {
  for (let i = 0; i < count; i++) read(`x-${others++}-of-nobody`)
}

test.each(Object.entries(readers))(
  '%s: the names in use are remembered after a flood of others',
  (_, { read, usual, own: ownName }) => {
    flood(read, 33_000)
    for (const name of usual) expect(read(name), name).toBe(read(name))
    // A new name is remembered after some requests, and stays remembered while others arrive.
    for (let i = 0; i < 16; i++) read(ownName)
    const own = read(ownName)
    expect(read(ownName)).toBe(own)
    for (let i = 0; i < 100; i++) {
      flood(read, 100)
      expect(read(ownName)).toBe(own)
    }
  },
)

test('a name is the same text in each message, and none in other letters than lower case has a class', () => {
  for (const name of [...usualNames, 'x-own-name']) {
    const upper = name.toUpperCase()
    expect(readFieldName(upper)?.name).toBe(name)
    expect(classify(name)).toBeDefined()
    expect([classify(upper), classifyResponseField(upper)]).toEqual([undefined, undefined])
  }
  for (const name of ['', 'a b', 'a:', ':path', 'ä', 'a\r']) expect(readFieldName(name), name).toBeUndefined()
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
      // A lookup of an unknown text adds no entry.
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

test('the cache never exceeds its weight', () => {
  const weigh = (text: string): number => 1 + (Number(text) % 8)
  const texts = fc.array(fc.integer({ min: 0, max: 40 }).map(String), { maxLength: 400 })
  fc.assert(
    fc.property(texts, (asked) => {
      const remembered = new Remembered<true>(20, 2, [], weigh)
      for (const text of asked) if (!remembered.find(text)) remembered.add(text, true)
      const all = Array.from({ length: 41 }, (_, i) => String(i))
      const found = all.filter((text) => remembered.find(text))
      expect(found.reduce((sum, text) => sum + weigh(text), 0)).toBeLessThanOrEqual(20)
    }),
  )
})
