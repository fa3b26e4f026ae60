import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { problemsOf } from '../../support/gateway/settings.ts'

/**
 * Each file in the folder has mistakes. It begins with the exact messages that it must cause, one in each comment line: the line number of
 * the mistake, then the message.
 */
const folder = join(import.meta.dirname, 'mistakes')
const files = readdirSync(folder).filter((name) => name.endsWith('.yaml'))

test.each(files)('%s', (file) => {
  const expected = messagesOf(readFileSync(join(folder, file), 'utf8'))
  expect(expected.length).toBeGreaterThan(0)
  expect(problemsOf({ CONFIG_FILE: file }, folder)).toEqual(expected.map((message) => `${file}:${message}`))
})

function messagesOf(text: string): string[] {
  const lines = text.split('\n')
  const end = lines.findIndex((line) => !line.startsWith('# '))
  return lines.slice(0, end).map((line) => line.slice('# '.length))
}
