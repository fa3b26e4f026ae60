import { expect, test } from 'vitest'
import { createClock } from '../../../proxy/testing/embedded/clock.ts'
import { createTokenGuesses } from '../../../proxy/admin/token-guesses.ts'

const clock = createClock()

test('after ten wrong tokens within a minute, a client is told to wait for a minute', async () => {
  const recordWrong = createTokenGuesses(() => clock.now())
  const waits = await Promise.all(Array.from({ length: 12 }, () => recordWrong('a')))
  expect(waits).toEqual([...Array.from({ length: 10 }, () => 0), 60, 60])
  expect(await recordWrong('b')).toBe(0)
  clock.advance(60_001)
  expect(await recordWrong('a')).toBe(0)
})

test('a further guess does not restart the wait', async () => {
  const recordWrong = createTokenGuesses(() => clock.now())
  for (let guess = 0; guess < 11; guess++) await recordWrong('a')
  clock.advance(30_000)
  expect(await recordWrong('a')).toBe(30)
  clock.advance(1_000)
  expect(await recordWrong('a')).toBe(29)
})

test('the client whose last wrong token is oldest is forgotten if there are too many', async () => {
  const recordWrong = createTokenGuesses(() => clock.now())
  for (const client of ['early', 'often']) {
    for (let guess = 0; guess < 11; guess++) await recordWrong(client)
  }
  for (let other = 0; other < 9_999; other++) {
    await recordWrong(`other ${other}`)
    if (other === 5_000) await recordWrong('often')
  }
  expect(await recordWrong('early')).toBe(0)
  expect(await recordWrong('often')).toBe(60)
})
