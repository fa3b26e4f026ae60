import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { directoryWith, loadWithFile, problemsOf } from '../support/gateway/settings.ts'

/** The messages on a page: indented lines that begin with the file and a line of it, or with `PORT`. */
function messagesOn(page: string): string[] {
  const text = readFileSync(join(import.meta.dirname, '../../docs', page), 'utf8')
  return [...text.matchAll(/^ {4}((?:sluice\.yaml:\d+|PORT): .*)$/gm)].map(([, message = '']) => message)
}

test('docs/configuration.md shows mistakes and a warning in the words of the gateway', () => {
  const mistaken = `limits:
  - name: login
    match: POST /login
    requests: 30/min
    window: 15m



trustedProxy: [10.0.0.0/8]
`
  const strict = `limits:
  - name: a
    match: POST /login
    requests: 5
    window: 15m



  - name: b
    match: POST /login
    requests: 30
    window: 15m
`
  const mistakes = problemsOf({ PORT: '80a' }, directoryWith(mistaken))
  expect(messagesOn('configuration.md')).toEqual([...mistakes, ...loadWithFile(strict).warnings])
})

test('docs/command-line.md shows mistakes in the words of the gateway', () => {
  const mistaken = `limits:
  - name: login
    match: POST /login
    requests: 0
    window: 15m
  - name: api
    match: GET /api/*
    requests: 10
    burst: 20
    window: 1m
`
  expect(messagesOn('command-line.md')).toEqual(problemsOf({}, directoryWith(mistaken)))
})
