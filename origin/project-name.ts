/**
 * The name of a project as it is kept: one form for each text that looks the same, without blanks around it.
 *
 * @returns nothing where it is not of 1 to 100 printable characters. Control and format characters are not printable:
 *   they make a terminal or a reader see something else.
 */
export function readProjectName(text: string): string | undefined {
  const name = text.normalize('NFC').trim()
  return /^[^\p{C}\p{Zl}\p{Zp}]{1,100}$/u.test(name) ? name : undefined
}
