/** Control sequences of terminals (ECMA-48, and xterm's alternate screen). */
const ALTERNATE = '\u001b[?1049h\u001b[?25l'
const NORMAL = '\u001b[?25h\u001b[?1049l'
const HOME = '\u001b[H'
const REST_OF_LINE = '\u001b[K'
const REST_OF_SCREEN = '\u001b[J'
const BOLD = '\u001b[1m'
const PLAIN = '\u001b[0m'

export type Screen = {
  /** Draws over the current screen in one write, so that unchanged parts do not flicker. */
  draw(linesFor: (rows: number) => readonly string[]): void
  close(): void
}

/**
 * Takes over the terminal. Its previous content returns when the screen is closed.
 *
 * @param options.onQuit called for `q`, Ctrl-C, SIGTERM and SIGINT
 */
export function openScreen(options: { readonly onQuit: () => void }): Screen {
  const { stdin, stdout } = process
  const hasColors = !process.env['NO_COLOR']
  let last: (rows: number) => readonly string[] = () => []

  function redraw(): void {
    // A terminal that does not know its size reports 0.
    const [columns, rows] = [stdout.columns || 80, stdout.rows || 24]
    const lines = last(rows - 1).map((line, at) => {
      const shown = Array.from(line).slice(0, columns).join('')
      return `${at === 0 && hasColors ? `${BOLD}${shown}${PLAIN}` : shown}${REST_OF_LINE}`
    })
    stdout.write(`${HOME}${lines.join('\r\n')}${REST_OF_SCREEN}`)
  }

  function readKey(keys: Buffer): void {
    // In raw mode, Ctrl-C arrives like any other key.
    if (/[q\u0003]/i.test(keys.toString('latin1'))) options.onQuit()
  }

  stdout.write(ALTERNATE)
  stdout.on('resize', redraw)
  if (stdin.isTTY) {
    stdin.setRawMode(true)
    stdin.on('data', readKey)
  }
  process.on('SIGTERM', options.onQuit)
  process.on('SIGINT', options.onQuit)
  return {
    draw(linesFor) {
      last = linesFor
      redraw()
    },
    close() {
      stdout.off('resize', redraw)
      if (stdin.isTTY) {
        stdin.off('data', readKey)
        stdin.setRawMode(false)
        stdin.pause()
      }
      process.off('SIGTERM', options.onQuit)
      process.off('SIGINT', options.onQuit)
      stdout.write(NORMAL)
    },
  }
}
