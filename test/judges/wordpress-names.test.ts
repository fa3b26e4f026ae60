import fc from 'fast-check'
import { expect, test } from 'vitest'
import { bodyKeysOf } from '../../proxy/limits/keys/body/body-keys.ts'
import { bodyValues, KeyBody } from '../../proxy/limits/keys/body/key-body.ts'
import { BodyNames, type BodyPart } from '../../proxy/limits/keys/body/names/body-names.ts'
import { hashedKeyOf } from '../../proxy/limits/keys/partition-key.ts'
import { withoutTags } from '../../proxy/limits/keys/body/wordpress/stripped-tags.ts'
import { testSeed } from '../support/random/seed.ts'
import { askPhp } from './php.ts'

/*
 * The attack: a name that WordPress cleans until it equals another account's name, so that the attacker gets guesses of its own. WordPress
 * itself, on PHP, says which account it reads in each of thousands of names.
 */

const NAMES = Number(process.env['JUDGE_SAMPLES'] ?? 20_000)

const words = (list: string, ...others: string[]): fc.Arbitrary<string> =>
  fc.constantFrom(...list.split(' '), ...others)
const tag = words(
  `< < > " ' ! ? - / \\ ( ) l e <?xml ?> <!doctype <!-- --> <script> </script> <SCRIPT <style </style> script style`,
  ...[' ', '\n', '\0'],
)
const other = words('% %4 1 é ä ü å ø æ ð Đ € £ ß ª & ; x', ...['e\u0301', ' ', '\t', '\f', '\0'])
const name = fc
  .oneof(
    fc.array(tag, { maxLength: 25 }),
    fc.array(other, { maxLength: 12 }),
    fc.array(fc.oneof(tag, other, words('a d m i n')), { maxLength: 25 }),
  )
  .map((atoms) => atoms.join(''))

const names = fc.sample(name, { numRuns: NAMES, seed: testSeed() }).filter((each) => each !== '')

/** Each name as WordPress cleans it in a language: with only tags removed, at a sign-in, and at the lookup. */
function cleanedIn(language: string): readonly (readonly string[])[] {
  const sent = names.map((each) => Buffer.from(each).toString('hex'))
  const cleaned = askPhp('sanitize_user.php', [language], ['wordpress'], sent) as string[][]
  return cleaned.map((texts) => texts.map((hex) => Buffer.from(hex, 'hex').toString('latin1')))
}

test('tags are what PHP takes for them', () => {
  const cleaned = cleanedIn('en_US')
  const trimmed = (of: string): string => of.replace(/^[ \n\r\t\v\0]+|[ \n\r\t\v\0]+$/g, '')
  for (const [i, each] of names.entries())
    expect(trimmed(withoutTags(Buffer.from(each).toString('latin1'))), JSON.stringify(each)).toBe(
      cleaned[i]?.[0],
    )
})

/** WordPress allows no other characters in account names. */
const isAccount = /^[a-z0-9 _.\-@]+$/i
const part: BodyPart = { kind: 'body', name: 'log', path: ['log'] }
const formNames = new BodyNames([part])

const types: readonly (readonly [type: string, bodyOf: (log: string) => string])[] = [
  ['application/json', (log) => JSON.stringify({ log })],
  ['application/x-www-form-urlencoded', (log) => `log=${encodeURIComponent(log)}`],
]

test.each(['en_US', 'de_DE', 'da_DK', 'ca', 'sr_RS'])(
  'a name counts for the account that WordPress finds in the language %s',
  (language) => {
    const cleaned = cleanedIn(language)
    for (const [i, each] of names.entries()) {
      const accounts = (cleaned[i] ?? []).slice(1).filter((account) => isAccount.test(account))
      for (const [type, bodyOf] of accounts.length > 0 ? types : []) {
        const sent = { bytes: Buffer.from(bodyOf(each)), isWhole: true }
        const body = new KeyBody(sent, { rawHeaders: ['content-type', type] }, '/', formNames)
        const keys = bodyKeysOf({ partition: [part] }, () => [], body, '192.0.2.1')
        for (const value of accounts.flatMap((account) => bodyValues(account, false)))
          expect(
            keys?.requests.get(hashedKeyOf(`${value.length}:${value}`)),
            JSON.stringify([each, value]),
          ).toBe(1)
      }
    }
  },
)
