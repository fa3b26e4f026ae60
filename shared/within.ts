import { afterInput } from './after-input.ts'

/** Rejects where the answer takes longer. What it would have been is dropped, also if it is an error. */
export async function within<Answer>(timeoutMs: number, answer: Promise<Answer>): Promise<Answer> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      afterInput(() => reject(new Error(`no answer in ${timeoutMs} ms`)))
    }, timeoutMs)
  })
  try {
    return await Promise.race([answer, timeout])
  } finally {
    clearTimeout(timer)
  }
}

/** Resolves when the work has ended, or after `limitMs` without that; the work goes on then. Rejects if the work rejects before. */
export async function endedWithin(limitMs: number, work: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const limit = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, limitMs)
  })
  try {
    await Promise.race([work, limit])
  } finally {
    clearTimeout(timer)
  }
}
