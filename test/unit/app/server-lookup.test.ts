import { expect, test } from 'vitest'
import { createServerLookUp } from '../../../proxy/app/upstreams/server-lookup.ts'
import { NameError } from '../../../proxy/names/name-error.ts'
import { Names } from '../../../proxy/names/names.ts'

const two = ['192.0.2.1', '192.0.2.2']

/** A name that has two addresses at first, and whose next lookup fails with this code. */
async function failAfterAnswer(code: 'ENOTFOUND' | 'EAI_AGAIN', afterMs: number) {
  let nowMs = 0
  const answers = [() => Promise.resolve({ addresses: two, forMs: 1_000 })]
  const find = (): ReturnType<(typeof answers)[number]> =>
    answers.shift()?.() ?? Promise.reject(new NameError(code, 'a.test'))
  const lookUp = createServerLookUp(new Names({ find, now: () => nowMs }))
  expect(await lookUp('a.test')).toEqual({ addresses: two, forMs: 1_000 })
  nowMs += afterMs
  return lookUp('a.test')
}

test('a name that does not exist any more has no servers', async () => {
  expect((await failAfterAnswer('ENOTFOUND', 1_000)).addresses).toEqual([])
})

test('the servers of a name stay while the name servers do not answer, for a day', async () => {
  await expect(failAfterAnswer('EAI_AGAIN', 1_000)).rejects.toThrow('EAI_AGAIN')
  expect((await failAfterAnswer('EAI_AGAIN', 86_401_000)).addresses).toEqual([])
})
