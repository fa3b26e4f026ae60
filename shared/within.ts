import { afterInput } from './after-input.ts'

/** Rejects with `no answer in … ms` if the answer takes longer, and ignores an answer or error that arrives afterwards. */
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

/** Resolves when the work has ended, or after `limitMs` if it has not. Rejects if the work rejects before that. */
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
