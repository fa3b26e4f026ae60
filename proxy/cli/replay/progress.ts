import type { LogFile } from './logs/read-lines.ts'

const EVERY_MS = 200
const WIDTH = 30

/**
 * Shows how much of the logs has been read, on the last line of a terminal; without a terminal, shows nothing. Returns a function that
 * removes the line.
 */
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
