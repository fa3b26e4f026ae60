import type { LogFile } from './logs/read-lines.ts'

const EVERY_MS = 200
const WIDTH = 30

/** Draws how much of the logs is read on the last line of a terminal; elsewhere draws nothing. Returns a function that ends it. */
export function showProgress(logs: readonly LogFile[]): () => void {
  const { stderr } = process
  if (!stderr.isTTY) return () => undefined
  const total = logs.reduce((sum, { bytes }) => sum + (bytes ?? NaN), 0)
  const draw = (): void => {
    const read = logs.reduce((sum, log) => sum + log.readBytes(), 0)
    const filled = total > 0 ? Math.round((WIDTH * read) / total) : 0
    const bar = Number.isNaN(total) ? '' : `[${'#'.repeat(filled).padEnd(WIDTH, '.')}] `
    stderr.write(`\r\u001b[K${bar}${(read / 1e6).toFixed(0)} MB`)
  }
  const timer = setInterval(draw, EVERY_MS)
  return () => {
    clearInterval(timer)
    stderr.write('\r\u001b[K')
  }
}
