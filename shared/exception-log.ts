import { boundLines } from './bounded-lines.ts'
import type { Log } from './log.ts'

/** Logs an exception as `err`, with further fields. */
type LogException = (
  fields: { readonly err: unknown; readonly [name: string]: unknown },
  message: string,
) => void

/** Logs exceptions that clients may be able to cause, up to 100 a second, so that a bug neither fills a disk nor hides other lines. */
export function createExceptionLog(log: Log): LogException {
  const mayWrite = boundLines((leftOut) => log.error({ leftOut }, 'exception log lines suppressed'))
  return (fields, message) => {
    if (mayWrite()) log.error(fields, message)
  }
}
