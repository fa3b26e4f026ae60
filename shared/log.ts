import { inspect } from 'node:util'
import { pino, stdTimeFunctions, type DestinationStream, type Logger } from 'pino'
import type { prettyFactory as PrettyFactory } from 'pino-pretty'
import { StdoutWriter } from './line-writer.ts'

export type Log = Logger

/** Loaded only for a terminal, to make every other start faster. */
const pretty = process.stdout.isTTY ? await import('pino-pretty') : undefined

/**
 * Creates the log of the process: one JSON object per line on standard output, or readable lines if that is a terminal. Writing never
 * blocks the process and never ends it: see `StdoutWriter`.
 *
 * @param name the process that writes: `gateway` or `origin`
 * @param level one of pino's levels, or `silent`
 */
export function createLog(name: string, level: string): Log {
  const stdout = new StdoutWriter((lines) => {
    log.warn({ lines }, 'log lines were dropped: standard output was not read')
  })
  const log = pino(
    {
      level,
      base: { name, pid: process.pid },
      timestamp: stdTimeFunctions.isoTime,
      serializers: { err: serializeException },
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

/** Maximum length of each text of an exception, in characters. The text may quote input of a client. */
const MAX_TEXT = 4096
/** Maximum number of members of an exception besides its type, message and stack, such as `code` and `address`. */
const MAX_MEMBERS = 16

/**
 * Converts an exception for a log line: its type, its message and stack, including those of its causes, and its other members.
 *
 * @internal exported for its test
 */
export function serializeException(error: unknown): unknown {
  if (!(error instanceof Error)) return shortened(error)
  const { type, message, stack, ...members }: Readonly<Record<string, unknown>> =
    pino.stdSerializers.err(error)
  const parts = [['type', type], ['message', message], ['stack', stack], ...Object.entries(members)] as const
  return Object.fromEntries(parts.slice(0, 3 + MAX_MEMBERS).map(([name, value]) => [name, shortened(value)]))
}

function shortened(value: unknown): unknown {
  if (typeof value === 'number' || typeof value === 'boolean') return value
  const text = typeof value === 'string' ? value : inspect(value, { depth: 1, maxStringLength: MAX_TEXT })
  return text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}… (${text.length} characters)` : text
}
