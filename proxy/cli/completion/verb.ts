import type { Verb } from '../command-tree.ts'
import { printJson, status } from '../output.ts'
import { bashCompletion } from './bash.ts'
import { zshCompletion } from './zsh.ts'

/** @param shell `bash` or `zsh` */
export function printCompletion(
  shell: string,
  verbs: readonly Verb[],
  { json = false }: { readonly json?: boolean },
): number {
  const script = shell === 'zsh' ? zshCompletion(verbs) : bashCompletion(verbs)
  if (json) printJson({ shell, script })
  else process.stdout.write(script)
  return status.yes
}
