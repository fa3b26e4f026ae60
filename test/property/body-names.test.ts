import { expect, test } from 'vitest'
import { bodyKeysOf } from '../../proxy/limits/keys/body/body-keys.ts'
import { KeyBody } from '../../proxy/limits/keys/body/key-body.ts'
import { BodyNames, type BodyPart } from '../../proxy/limits/keys/body/names/body-names.ts'
import { drawRequest } from '../backends/bodies/bodies.ts'
import { seededRandom } from '../support/random/seeded-random.ts'
import { runs } from '../support/random/runs.ts'
import { testSeed } from '../support/random/seed.ts'

/*
 * A body is walked once for all names of all rules. For each name, the walk must find the same as a walk for that name alone: other rules
 * change nothing. All names share the bounds, so with more of them it may end sooner: it must say so then, and seldom do so.
 */

const paths = [
  'email',
  'user.email',
  'user',
  'x',
  'password',
  'user.0',
  '0.email',
  'email.x',
  'e_mail',
  'emaıl.x.user',
  'proto',
]
const parts = paths.map((name): BodyPart => ({ kind: 'body', name, path: name.split('.') }))
const together = new BodyNames(parts)

test('a trie of many names finds for each what a trie of it alone finds', () => {
  const random = seededRandom(testSeed())
  let found = 0
  let ended = 0
  for (let run = 0; run < runs(2000); run++) {
    const { types, query, body: text } = drawRequest(random)
    const rawHeaders = types.flatMap((type) => ['content-type', type])
    const sent = { bytes: Buffer.from(text, 'latin1'), isWhole: random() < 0.9 }
    const body = new KeyBody(sent, { rawHeaders }, `/?${query}`, together)
    for (const part of parts) {
      const alone = new KeyBody(sent, { rawHeaders }, `/?${query}`, new BodyNames([part]))
      const among = body.find(part)
      if (among.isCut || among.isIncomplete) ended++
      else expect(among, text).toEqual(alone.find(part))
      found += bodyKeysOf({ partition: [part] }, () => [], body, 'address')?.requests.size ?? 0
    }
  }
  expect(found).toBeGreaterThan(runs(2000) * parts.length)
  expect(ended).toBeLessThan(found / 10)
})
