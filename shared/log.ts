import { pino, stdTimeFunctions, type DestinationStream, type Logger } from 'pino'
import type { prettyFactory as PrettyFactory } from 'pino-pretty'
import { createStdoutWriter } from './line-writer.ts'

export type Log = Logger

/** Loaded only for a terminal: every start without one is shorter by it. */
const pretty = process.stdout.isTTY ? await import('pino-pretty') : undefined

/**
 * The process's log: one JSON object a line on standard output, readable lines when that is a terminal. It never holds
 * the process up and never ends it: see `createStdoutWriter`.
 *
 * @param name which process writes: `gateway` or `origin`
 * @param level one of pino's levels, or `silent`
 */
export function createLog(name: string, level: string): Log {
  const stdout = createStdoutWriter((lines) => {
    log.warn({ lines }, 'log lines were dropped: standard output was not read')
  })
  const log = pino(
    {
      level,
      base: { name, pid: process.pid },
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    pretty ? readable(stdout, pretty.prettyFactory) : stdout,
  )
  return log
}

function readable(stdout: DestinationStream, prettyFactory: typeof PrettyFactory): DestinationStream {
  const format = prettyFactory({ colorize: true, ignore: 'pid' })
  return { write: (line) => stdout.write(format(line)) }
}
