import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { readYamlMapping } from '../../proxy/config/file/yaml-document.ts'
import { runs } from '../support/random/runs.ts'

// One slip causes one reported mistake: messages after the parser has lost the structure would mislead.

const lines = readFileSync(join(import.meta.dirname, '../../sluice.example.yaml'), 'utf8').split('\n')
const places = [...lines.keys()].filter((at) => /^ *[^ #]/.test(lines[at] ?? ''))

const slips: readonly ((line: string) => string)[] = [
  (line) => ` ${line}`,
  (line) => `  ${line}`,
  (line) => line.replace(/^ /, ''),
  (line) => line.replace(/^ {2}/, ''),
  (line) => line.replace(/['"]/, ''),
  (line) => line.replace(/[\]}]([^\]}]*)$/, '$1'),
  (line) => line.replace(/[[{]/, ''),
  (line) => line.replace(': ', ' '),
  (line) => `\t${line}`,
]

test('a file with one slip has at most one mistake of form, near it', () => {
  fc.assert(
    fc.property(fc.constantFrom(...places), fc.constantFrom(...slips), (at, slip) => {
      const text = lines.map((line, index) => (index === at ? slip(line) : line)).join('\n')
      const { mistakes } = readYamlMapping(text)
      expect(mistakes.length, JSON.stringify(mistakes)).toBeLessThanOrEqual(1)
    }),
    { numRuns: runs(2000) },
  )
})
