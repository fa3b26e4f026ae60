/**
 * Exits with status 2 (wrong usage) if the process was given arguments. It takes no arguments, and if it ignored them, it would start with
 * other settings than intended.
 *
 * @param args the arguments after the script's name on the command line
 * @param settings where settings come from instead, for the message
 */
export function refuseArguments(args: readonly string[], settings: string): void {
  const [first] = args
  if (first === undefined) return
  // Print only the name of an option: the rest may be a secret.
  const [option] = /^(?:--[\w-]+|-\w)/.exec(first) ?? []
  process.stderr.write(`unknown argument${option === undefined ? '' : ` ${option}`}: ${settings}\n`)
  process.exit(2)
}
