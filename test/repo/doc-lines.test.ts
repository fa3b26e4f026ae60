import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const root = join(import.meta.dirname, '../..')
const pages = globSync(['*.md', 'docs/**/*.md'], { cwd: root })
const maxLength = 140

// Tables, commands, output, headings and long links cannot be wrapped.
test.each(pages)('each line of prose in %s has at most 140 characters', (page) => {
  const prose = readFileSync(join(root, page), 'utf8').replaceAll(/^( *)```[^]*?^\1```/gm, '')
  const lines = prose
    .split('\n')
    .filter((line) => line.length > maxLength && !/^(?:\||#| {4}|<!--)/.test(line))
  expect(lines.filter((line) => line.trim().includes(' '))).toEqual([])
})
