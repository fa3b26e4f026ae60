import { expect, test } from 'vitest'
import { bodyValues } from '../../proxy/limits/keys/body/key-body.ts'
import { runs } from '../support/random/runs.ts'

/*
 * Backends compare account names in one of these ways, and under each an attacker can spell one account in many ways. If the spellings did
 * not share a key, each of them would get its own guesses.
 */
const folds: Readonly<Record<string, (text: string) => string>> = {
  'lower case': (text) => text.toLowerCase(),
  'upper case': (text) => text.toUpperCase(),
  'casefold of Unicode': (text) => text.toUpperCase().toLowerCase(),
  'NFKC, as Django': (text) => text.normalize('NFKC'),
  'NFKC and casefold, as PRECIS': (text) =>
    text.normalize('NFKC').toUpperCase().toLowerCase().normalize('NFKC'),
  'lower case in Turkish': (text) => text.toLocaleLowerCase('tr'),
  'upper case in Turkish': (text) => text.toLocaleUpperCase('tr'),
  'lower case in Lithuanian': (text) => text.toLocaleLowerCase('lt'),
  'without accents, as a collation _ai_ci': (text) =>
    text.normalize('NFKD').replaceAll(/\p{M}/gu, '').toLowerCase(),
  'ß as ss': (text) => text.replaceAll('ß', 'ss').replaceAll('ẞ', 'SS').toLowerCase(),
}

/** Blocks in which some fold changes a character. */
const blocks = [
  [0x20, 0xd7ff],
  [0xf900, 0x1_ffff],
  [0x2_f800, 0x2_fa1f],
] as const

function* characters(): Generator<string> {
  for (const [first, last] of blocks)
    for (let code = first; code <= last; code++) yield String.fromCodePoint(code)
}

/** Groups the characters that a fold changes by its result, and includes the result itself. */
function spellingsBy(fold: (text: string) => string): string[][] {
  const classes = new Map<string, string[]>()
  for (const character of characters()) {
    const folded = fold(character)
    if (folded === character) continue
    const spellings = classes.get(folded) ?? [folded]
    classes.set(folded, [...spellings, character])
  }
  return [...classes.values()]
}

function keysOf(name: string): ReadonlySet<string> {
  return new Set(bodyValues(Buffer.from(name).toString('latin1'), false))
}

test.each(Object.entries(folds))('all spellings of an account share a key: %s', (_, fold) => {
  const all = spellingsBy(fold)
  const apart: string[] = []
  const step = Math.max(1, Math.floor(all.length / runs(all.length)))
  for (let i = 0; i < all.length; i += step) {
    const spellings = all[i] ?? []
    const [first = new Set<string>(), ...others] = spellings.map((each) => keysOf(`a${each}b@x`))
    const shared = [...first].filter((key) => others.every((keys) => keys.has(key)))
    if (shared.length === 0) apart.push(spellings.join(' '))
  }
  expect(all.length).toBeGreaterThan(0)
  expect(apart).toEqual([])
})

test.each([
  ['straße@x', 'STRASSE@X', 'strasse@x', 'ﬆrasse@x'],
  ['straße@x', 'strase@x'],
  ['ᾳᾳᾳ@x', 'ααα@x', 'Άάᾳ@x'],
  ['ᾳᾳᾳ@x', 'αιαιαι@x'],
  ['İsmail@x', 'ismail@x', 'ISMAİL@x', 'ısmaıl@x'],
  ['ａｎｎａ＠ｘ', 'anna@x', 'ANNA@X', ' anna@x '],
  ['anna\u00ad@x', 'anna@x', 'a\u200bnna@x'],
])('%j and %j share a key', (...spellings) => {
  const [first = new Set<string>(), ...others] = spellings.map(keysOf)
  expect([...first].filter((key) => others.every((keys) => keys.has(key)))).not.toEqual([])
})
