import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { canonicalCredentials } from '../../proxy/limits/keys/credentials/credentials.ts'
import { leastTimeSync, threadCpuUs } from '../support/load/least-time.ts'
import { runs } from '../support/random/runs.ts'

// The attack: one token in many spellings, each with its own quota.

const blank = fc.string({ unit: fc.constantFrom(' ', '\t', '\xa0', '\x85'), minLength: 1, maxLength: 3 })
const scheme = fc.constantFrom('Basic', 'Bearer', 'Digest', 'DPoP', 'Negotiate', 'Token', 'X-Own')
const token = fc.string({
  unit: fc.constantFrom(...Array.from('abcXYZ019-._~+/')),
  minLength: 1,
  maxLength: 12,
})
const cased = (text: string): fc.Arbitrary<string> =>
  fc
    .array(fc.boolean(), { minLength: text.length, maxLength: text.length })
    .map((upper) => Array.from(text, (c, i) => (upper[i] ? c.toUpperCase() : c.toLowerCase())).join(''))
const bytes = fc.string({ unit: fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code)) })
const many = { numRuns: runs(2000) }
const MAX_US = 200_000

describe('credentials', () => {
  test('come back unchanged when they are made canonical again', () => {
    const spelled = fc.tuple(scheme.chain(cased), blank, bytes).map((parts) => parts.join(''))
    fc.assert(
      fc.property(fc.oneof(bytes, spelled), (value) => {
        const canonical = canonicalCredentials(value)
        expect(canonicalCredentials(canonical)).toBe(canonical)
      }),
      many,
    )
  })

  test('credentials count as one in any case of the scheme and with any blanks', () => {
    const spelling = scheme.chain((name) => fc.tuple(fc.constant(name), cased(name)))
    fc.assert(
      fc.property(
        spelling,
        token,
        blank,
        fc.option(blank),
        bytes,
        ([name, spelt], word, before, after, rest) => {
          // No backend reads the text after the token.
          const tail = after === null ? '' : after + rest
          fc.pre(!/token=/i.test(tail))
          expect(canonicalCredentials(`${spelt}${before}${word}${tail}`)).toBe(
            canonicalCredentials(`${name} ${word}`),
          )
        },
      ),
      many,
    )
  })

  test('credentials of different tokens, or of different schemes, differ', () => {
    const plain = fc.tuple(fc.constantFrom('Bearer', 'Token', 'DPoP'), token)
    fc.assert(
      fc.property(plain, plain, (one, other) => {
        fc.pre(one[1].split('.').length !== 3 && other[1].split('.').length !== 3)
        const same = canonicalCredentials(one.join(' ')) === canonicalCredentials(other.join(' '))
        expect(same).toBe(one.join(' ') === other.join(' '))
      }),
      many,
    )
  })

  test('a user and a password count as one in each spelling of base64', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme-ascii', maxLength: 40 }), (text) => {
        const usual = Buffer.from(`u:${text}`).toString('base64')
        const unpadded = usual.replace(/=+$/, '')
        for (const spelling of [
          usual,
          unpadded,
          `${unpadded}====`,
          Buffer.from(`u:${text}`).toString('base64url'),
        ])
          expect(canonicalCredentials(`basic ${spelling}`)).toBe(`Basic ${usual}`)
      }),
      many,
    )
  })

  test('a JSON Web Token counts as one whatever the unused bits of its last character are', () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ minLength: 32, maxLength: 32 }),
        fc.integer({ min: 0, max: 3 }),
        (signature, bits) => {
          const usual = Buffer.from(signature).toString('base64url')
          const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
          const last = alphabet[(alphabet.indexOf(usual.slice(-1)) & ~3) | bits] ?? ''
          const token = `eyJhbGciOiJIUzI1NiJ9.e30.`
          expect(canonicalCredentials(`Bearer ${token}${usual.slice(0, -1)}${last}`)).toBe(
            `Bearer ${token}${usual}`,
          )
        },
      ),
      many,
    )
  })

  test('credentials are read in a time that grows with their length', () => {
    for (const piece of [' ', 'a ', 'token=', ',token', 'a.', '=', '\xa0'])
      for (const form of [
        (text: string) => `Bearer a${text}b`,
        (text: string) => text,
        (text: string) => `Bearer${text}`,
      ]) {
        const value = form(piece.repeat(16_000 / piece.length))
        const tookUs = leastTimeSync(MAX_US, () => threadCpuUs(() => canonicalCredentials(value)))
        // This takes a millisecond; a quadratic step would take a second.
        expect(tookUs, form(piece)).toBeLessThan(MAX_US)
      }
  })
})
