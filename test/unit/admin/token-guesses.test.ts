import { expect, test } from 'vitest'
import { createClock } from '../../../proxy/testing/embedded/clock.ts'
import { createTokenGuesses } from '../../../proxy/admin/token-guesses.ts'

const clock = createClock()

test('after the eleventh wrong token within a minute, tokens are ignored for a minute', async () => {
  const guesses = createTokenGuesses(() => clock.now())
  const waits = await Promise.all(Array.from({ length: 12 }, () => guesses.recordWrong('a')))
  expect(waits).toEqual([...Array.from({ length: 10 }, () => 0), 60, 60])
  expect(await guesses.readWaitS('a')).toBe(60)
  expect(await guesses.readWaitS('b')).toBe(0)
  clock.advance(60_001)
  expect(await guesses.readWaitS('a')).toBe(0)
  expect(await guesses.recordWrong('a')).toBe(0)
})

test('a further guess does not restart the wait', async () => {
  const guesses = createTokenGuesses(() => clock.now())
  for (let guess = 0; guess < 11; guess++) await guesses.recordWrong('a')
  clock.advance(30_000)
  expect(await guesses.recordWrong('a')).toBe(30)
  expect(await guesses.readWaitS('a')).toBe(30)
})

test('of more clients than are kept, the one that has not guessed for longest is forgotten', async () => {
  const guesses = createTokenGuesses(() => clock.now())
  for (const client of ['early', 'often']) {
    for (let guess = 0; guess < 11; guess++) await guesses.recordWrong(client)
  }
  for (let other = 0; other < 9_999; other++) {
    await guesses.recordWrong(`other ${other}`)
    if (other === 5_000) await guesses.recordWrong('often')
  }
  expect(await guesses.readWaitS('early')).toBe(0)
  expect(await guesses.readWaitS('often')).toBe(60)
})
