import { expect, test } from 'vitest'
import { NextCharacter } from '../../../proxy/request/values/next-character.ts'
import { seededRandom } from '../../support/random/seeded-random.ts'
import { testSeed } from '../../support/random/seed.ts'

test('places of a character are those that indexOf finds, wherever one asks for them from left to right', () => {
  const random = seededRandom(testSeed())
  for (let run = 0; run < 2000; run++) {
    const spread = 1 + Math.floor(random() * 40)
    const text = Array.from({ length: Math.floor(random() * 120) }, () =>
      Math.floor(random() * spread) === 0 ? '&' : 'a',
    ).join('')
    const ampersands = new NextCharacter(text, 0x26)
    for (let start = 0; start <= text.length; start += Math.floor(random() * 20)) {
      const found = text.indexOf('&', start)
      expect(ampersands.from(start)).toBe(found === -1 ? text.length : found)
    }
  }
})
