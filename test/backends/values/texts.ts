import { disguise, escape, pick, type Random } from '../disguises.ts'
import type { Source } from './readers.ts'

/** Writes a text in which some library may read a value of this kind, as one character per byte. */
export function writeText(random: Random, source: Source): string {
  if (source === 'query') return visible(pairs(random, 'user', ['&', '&', ';', '&&', '?']))
  if (source === 'cookie')
    return fieldText(
      pairs(random, 'sid', ['; ', '; ', ';', ',', ', ', ' ', '&', '"', ']', '[', '\\', '\xff', '\t']),
    )
  if (source === 'uuid') return writeUuid(random)
  return writeNumber(random)
}

function pairs(random: Random, name: string, separators: readonly [string, ...string[]]): string {
  let text = ''
  for (let left = 1 + Math.floor(random() * 3); left > 0; left--) {
    const spelled =
      random() < 0.75 ? spellName(random, name) : pick(random, ['x', '', 'user', 'sid', 'expires'])
    text += spelled + pick(random, ['=', '=', '=', '=', ' = ', '==', '', ']=']) + spellValue(random)
    if (left > 1 || random() < 0.2) text += pick(random, separators)
  }
  return text
}

const aroundNames = [
  '',
  '',
  '',
  '[',
  ']',
  '[]',
  '[[',
  ']]',
  '=',
  '==',
  ' ',
  '+',
  '%00',
  '%5B',
  '%5D',
  '?',
  '[x]',
  '[x',
  '.',
  '_',
  '"',
  '\\',
  '[=',
  '&',
]

function spellName(random: Random, name: string): string {
  const at = Math.floor(random() * name.length)
  const inside =
    random() < 0.25 ? name.slice(0, at) + disguise(random, name.charAt(at)) + name.slice(at + 1) : name
  return around(random) + inside + around(random)
}

function around(random: Random): string {
  return random() < 0.6 ? '' : (aroundNames[Math.floor(random() * aroundNames.length)] ?? '')
}

const besideValues = [
  '',
  '',
  '&x',
  ']1',
  '[',
  '"',
  '\\',
  '\\"',
  '\\142',
  ',x',
  ' x',
  ';x',
  '%00x',
  '+',
  '%20',
  '\xff',
  '%FF',
  '=',
  '%26',
  '%3B',
  '{',
  "'",
  '|',
  '\t',
]

function spellValue(random: Random): string {
  let value = 'abc'
  if (random() < 0.3)
    value = Array.from(value, (one) => (random() < 0.5 ? disguise(random, one) : one)).join('')
  if (random() < 0.1) value = escape(random, value)
  if (random() < 0.2) value = `"${value}"`
  for (let left = Math.floor(random() * 3); left > 0; left--) {
    const beside = besideValues[Math.floor(random() * besideValues.length)] ?? ''
    const at = Math.floor(random() * (value.length + 1))
    value = random() < 0.5 ? value + beside : value.slice(0, at) + beside + value.slice(at)
  }
  return value
}

const numberParts = [
  '0',
  '0',
  '7',
  '7',
  '1',
  '_',
  '.',
  'e',
  '+',
  '-',
  'x',
  '0x',
  '0b',
  '0o',
  '0d',
  '#',
  ' ',
  '\t',
  'a',
  ',',
  ';',
  '\uff17',
  '\u0667',
  '\uff10',
  '\u00a0',
] as const

function writeNumber(random: Random): string {
  let text = ''
  for (let left = 1 + Math.floor(random() * 6); left > 0; left--) text += pick(random, numberParts)
  return Buffer.from(text).toString('latin1')
}

function writeUuid(random: Random): string {
  let text = pick(random, [
    '0fc3a1b2-0001-4002-8003-0000ffff0abc',
    '0fc3a1b2000140028003ffff00000abc',
    'FFc3a1b2-0001-4002-8003-0000ffff0abc',
  ])
  for (let left = Math.floor(random() * 4); left > 0; left--) {
    const at = Math.floor(random() * (text.length + 1))
    text = pick<() => string>(random, [
      () => `{${text}}`,
      () => `urn:uuid:${text}`,
      () => `urn:${text}`,
      () => text.replaceAll('-', ''),
      () => text.toUpperCase(),
      () => `${text.slice(0, at)}-${text.slice(at)}`,
      () => `}${text}{`,
      () => `${text.slice(0, at)}${'-'.repeat(200)}${text.slice(at)}`,
      () => `${'uuid:'.repeat(40)}${text}`,
      () => `uurn:uid:${text}`,
      () => text.replace(/^0/, '+'),
      () => `${text.slice(0, at)}_${text.slice(at)}`.replace(/^0/, ''),
    ])()
  }
  return text
}

/** Escapes everything that a target may not contain. */
function visible(text: string): string {
  return text.replace(/[^\x21-\x7e]|#/g, (one) => `%${one.charCodeAt(0).toString(16).padStart(2, '0')}`)
}

/** Escapes everything that a header value may not contain. */
function fieldText(text: string): string {
  return Buffer.from(text)
    .toString('latin1')
    .replace(/[^\t\x20-\x7e\x80-\xff]/g, '')
}
