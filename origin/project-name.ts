/**
 * Normalizes the name of a project (Unicode NFC, trimmed), so that names that look the same are equal.
 *
 * @returns undefined unless it has 1 to 100 printable characters. Control and format characters, which can disguise a name,
 *   are not allowed.
 */
export function readProjectName(text: string): string | undefined {
  const name = text.normalize('NFC').trim()
  return /^[^\p{C}\p{Zl}\p{Zp}]{1,100}$/u.test(name) ? name : undefined
}
