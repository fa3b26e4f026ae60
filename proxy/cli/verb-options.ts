import type { Command } from 'commander'

/** `--json` of a verb. */
export type Json = { readonly json?: true }

/** What a verb's action is told its status by. */
export type Report = (status: number) => void

export function withJson(command: Command): Command {
  return command.option('--json', 'print JSON')
}

export function example(command: string): string {
  return `\nExample:\n  ${command}`
}
