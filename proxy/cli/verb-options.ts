import type { Command } from 'commander'

/** `--json` of a verb. */
export type Json = { readonly json?: true }

/** A callback with which a verb's action sets its status. */
export type Report = (status: number) => void

export function withJson(command: Command): Command {
  return command.option('--json', 'print JSON')
}

export function example(command: string): string {
  return `\nExample:\n  ${command}`
}
