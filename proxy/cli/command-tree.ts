import type { Command } from 'commander'

/** A verb with the content of its help, independent of the parsing library. */
export type Verb = {
  readonly name: string
  readonly description: string
  readonly options: readonly VerbOption[]
  readonly takes: Values
}

export type VerbOption = {
  /** `--config`. */
  readonly flag: string
  readonly description: string
  /** The kind of its value; undefined if it takes no value. */
  readonly values: Values | undefined
  readonly repeats: boolean
}

/** The kind of a value on the command line: one of a list, the path of a file, or free text. */
export type Values =
  | { readonly kind: 'choices'; readonly of: readonly string[] }
  | { readonly kind: 'files' | 'other' }

/** Names of values that are paths, as the help shows them: `<file>`, `<log...>`. */
const paths = new Set(['file', 'log'])

/**
 * Returns the verbs of a program, in the order of its help.
 *
 * @param known the values of arguments by name, if the program itself does not list them
 */
export function describeVerbs(
  program: Command,
  known: ReadonlyMap<string, readonly string[]> = new Map(),
): readonly Verb[] {
  return program.commands.map((command) => {
    const [first] = command.registeredArguments
    return {
      name: command.name(),
      description: command.description(),
      options: [...command.options, ...helpOf(command)].map(
        ({ long, description, required, flags, argChoices, defaultValue }) => ({
          flag: long ?? flags,
          description,
          values: required ? valuesOf(/<([^>.]+)/.exec(flags)?.[1] ?? '', argChoices) : undefined,
          repeats: Array.isArray(defaultValue),
        }),
      ),
      takes: valuesOf(first?.name() ?? '', first?.argChoices ?? known.get(first?.name() ?? '')),
    }
  })
}

/** Returns the option `--help`, which the library adds only when it prints the help. */
function helpOf(command: Command): Command['options'] {
  return command
    .createHelp()
    .visibleOptions(command)
    .filter(({ long }) => long === '--help')
}

function valuesOf(name: string, choices: readonly string[] | undefined): Values {
  if (choices) return { kind: 'choices', of: choices }
  return { kind: paths.has(name) ? 'files' : 'other' }
}
