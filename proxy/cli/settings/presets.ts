import { presetNames, readPreset, unknownPreset } from '../../config/presets.ts'
import { CommandError, formatTable, print, printJson, status } from '../output.ts'

/** Lists the presets, or shows one: its file or, with `--json`, its rules with the sources of their figures. */
export function presets(name: string | undefined, { json = false }: { readonly json?: boolean }): number {
  const known = presetNames.find((each) => each === name)
  if (name !== undefined && known === undefined)
    throw new CommandError(`preset ${JSON.stringify(name)}: ${unknownPreset(name)}`, status.usage)
  if (known === undefined) {
    const all = presetNames.map(readPreset)
    if (json)
      printJson(all.map(({ name, description, rules }) => ({ name, description, rules: rules.length })))
    else {
      const rows = all.map(({ name, description, rules }) => [name, String(rules.length), description])
      print(formatTable(['preset', '>rules', 'what it limits'], rows))
    }
    return status.yes
  }
  const { description, rules, text } = readPreset(known)
  if (json) printJson({ name: known, description, limits: rules })
  else print(text.trimEnd())
  return status.yes
}
