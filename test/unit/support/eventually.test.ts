import { expect, onTestFinished, test, vi } from 'vitest'
import { eventually } from '../../support/wait/eventually.ts'

const briefly = { endMs: 30 }

test('eventually resolves with the first answer that is neither false nor an error', async () => {
  const answers = [
    () => false as const,
    () => {
      throw new Error('not yet')
    },
    () => Promise.reject(new Error('not yet')),
    () => Promise.resolve(false as const),
    () => 7,
    () => 8,
  ]
  expect(await eventually('seven', () => answers.shift()?.() ?? 0)).toBe(7)
})

test('eventually counts an assertion that holds as the end', async () => {
  let asked = 0
  await eventually('asked three times', () => expect(++asked).toBe(3))
  await eventually('asked five times', async () => {
    await Promise.resolve()
    expect(++asked).toBe(5)
  })
  expect(asked).toBe(5)
})

test('eventually asks once if the answer is there, and once more if the time has passed in the meantime', async () => {
  let asked = 0
  await eventually('asked', () => ++asked, { endMs: 0 })
  expect(asked).toBe(1)
})

test('eventually fails with the awaited event and the last observation', async () => {
  const counts = [1, 2]
  const assertion = eventually('three came', () => expect(counts).toHaveLength(3), briefly)
  await expect(assertion).rejects.toThrow(
    /^in 30 ms it did not come to this: three came\. Last seen: expected \[ 1, 2 \] to have a length of 3/,
  )
  await expect(assertion).rejects.toMatchObject({ cause: { actual: 2, expected: 3 } })
  const condition = eventually('three came', () => counts.length === 3, briefly)
  await expect(condition).rejects.toThrow(/three came\. Last seen: false of \(\) => counts\.length === 3$/)
  const reason = new Map([['a', 1]])
  const odd = eventually('three came', () => Promise.reject(reason as unknown as Error), briefly)
  await expect(odd).rejects.toThrow("Last seen: Map(1) { 'a' => 1 }")
})

test('eventually ends even if the probe never answers', async () => {
  const silent = new Promise<void>(() => undefined)
  await expect(eventually('an answer', () => silent, briefly)).rejects.toThrow(
    'Last seen: nothing, it has not answered once, and then no answer',
  )
  // No time passes between the checks, not even on a busy machine.
  vi.useFakeTimers({ toFake: ['performance'] })
  onTestFinished(() => void vi.useRealTimers())
  let asked = 0
  const falls = eventually('an answer', () => (++asked < 3 ? false : silent), briefly)
  await expect(falls).rejects.toThrow(/Last seen: false of .*, and then no answer$/)
})

test('eventually accepts no probe that may find nothing', async () => {
  const found = new Map([['a', 1]])
  // @ts-expect-error: an undefined would end the wait
  await eventually('b is there', () => found.get('b'))
  // @ts-expect-error: so would this
  await eventually('b is there', async () => Promise.resolve(found.get('b')))
})
