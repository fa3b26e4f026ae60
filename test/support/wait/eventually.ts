import { setTimeout as sleep } from 'node:timers/promises'
import { inspect } from 'node:util'

/** Long enough for a busy machine, and shorter than the time limit of a test, which would not name the missing event. */
const generousMs = 30_000
const maxPauseMs = 50
/** How long the probe still has for one last answer if the deadline passed while this process could not run. */
const lastAnswerMs = 1_000

/** A probe that looks something up and may find nothing must throw by `expect` or return `false`: undefined would count as found. */
// oxlint-disable-next-line typescript/no-invalid-void-type -- an assertion returns void, which is not undefined
type Certain<T> = [undefined] extends [Awaited<T>] ? ([void] extends [Awaited<T>] ? unknown : never) : unknown

/** The awaited value; a condition that holds has none. */
type Found<T> = [Awaited<T>] extends [boolean] ? undefined : Exclude<Awaited<T>, false>

/**
 * Calls the probe until it neither throws nor returns `false`, and resolves with what it returned. The pause before the next call is a
 * tenth of the time that has passed, 50 ms at most.
 *
 * @param what the awaited event, in words that complete "it did not come to this:"
 * @param probe an assertion, a condition, or a function that returns the awaited value
 * @param endMs milliseconds after which the wait fails. This is not a promise of the product: a test of how long something takes measures
 *   that time itself
 * @throws Error with `what` and the last observation; if the probe threw, that error is its `cause`
 */
export async function eventually<T>(
  what: string,
  probe: (() => T) & Certain<T>,
  { endMs = generousMs }: { readonly endMs?: number } = {},
): Promise<Found<T>> {
  const beganAtMs = performance.now()
  let seen: Seen = { text: 'nothing, it has not answered once' }
  for (;;) {
    const leftMs = beganAtMs + endMs - performance.now()
    const answer = await inTime(ask(probe), Math.max(leftMs, lastAnswerMs))
    if (answer && 'found' in answer) return answer.found
    if (!answer) throw failure(what, endMs, { ...seen, text: `${seen.text}, and then no answer` })
    seen = answer.seen
    const passedMs = performance.now() - beganAtMs
    if (passedMs > endMs) throw failure(what, endMs, seen)
    await sleep(Math.min(maxPauseMs, Math.max(1, passedMs / 10)))
  }
}

type Seen = { readonly text: string; readonly error?: unknown }
type Answer<T> = { readonly found: Found<T> } | { readonly seen: Seen }

async function ask<T>(probe: () => T): Promise<Answer<T>> {
  try {
    const found = await probe()
    if (found === false) return { seen: { text: `false of ${String(probe)}` } }
    return { found: found as Found<T> }
  } catch (error) {
    return { seen: { text: error instanceof Error ? error.message : inspect(error), error } }
  }
}

async function inTime<T>(answer: Promise<T>, timeoutMs: number): Promise<T | undefined> {
  const answered = new AbortController()
  const over = sleep(timeoutMs, undefined, { signal: answered.signal }).catch(() => undefined)
  try {
    return await Promise.race([answer, over])
  } finally {
    answered.abort()
  }
}

function failure(what: string, endMs: number, { text, error }: Seen): Error {
  const message = `in ${endMs} ms it did not come to this: ${what}. Last seen: ${text}`
  return new Error(message, error === undefined ? undefined : { cause: error })
}
