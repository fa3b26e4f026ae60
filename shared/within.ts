import { afterInput } from './after-input.ts'

/** Rejects with `no answer in … ms` if the answer takes longer. Then a later answer, or error, is ignored. */
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

/** Resolves when the work has ended, or after `limitMs` while it goes on. Rejects if the work rejects before. */
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
