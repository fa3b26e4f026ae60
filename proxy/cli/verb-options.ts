import type { Command } from 'commander'

/** The option `--json` of a verb. */
export type Json = { readonly json?: true }

/** A callback with which a verb's action sets the exit status. */
export type Report = (status: number) => void

/** Adds `--json` to a verb, whose action then gets it as `Json`. */
export function withJson(command: Command): Command {
  return command.option('--json', 'print JSON')
}

/** Returns the text of an example to add after the help of a verb. */
export function example(command: string): string {
  return `\nExample:\n  ${command}`
}
