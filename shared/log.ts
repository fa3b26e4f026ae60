import { pino, type Logger } from 'pino'
import pretty from 'pino-pretty'

export type Log = Logger

/**
 * The process's log: one JSON object a line on standard output, readable lines when that is a terminal.
 *
 * @param name which process writes: `gateway` or `origin`
 * @param level one of pino's levels, or `silent`
 */
export function createLog(name: string, level: string): Log {
  const options = { name, level, base: { name, pid: process.pid } }
  if (!process.stdout.isTTY) return pino(options)
  return pino(options, pretty({ colorize: true, ignore: 'pid,name', sync: true }))
}
