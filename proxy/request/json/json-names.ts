const backslash = 0x5c

/**
 * Whether the folded form of a name is `name`. Usually the first letter decides, which matters because there may be thousands of names.
 *
 * @returns undefined if the name has escapes or non-ASCII characters
 */
export function isNamed(text: string, start: number, end: number, name: string): boolean | undefined {
  let matched = 0
  for (let at = start; at < end; at++) {
    const code = text.charCodeAt(at)
    if (code === backslash || code > 0x7f) return undefined
    const isUpper = code >= 0x41 && code <= 0x5a
    if (!isUpper && !(code >= 0x61 && code <= 0x7a) && !(code >= 0x30 && code <= 0x39)) continue
    if (name.charCodeAt(matched++) !== (isUpper ? code + 0x20 : code)) return false
  }
  return matched === name.length
}

/**
 * Returns the letters and digits of a name, in the form in which names are compared. Folds case as Unicode does, including `ſ` and the
 * Kelvin sign.
 */
export function foldedName(name: string): string {
  return name
    .toUpperCase()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}]/gu, '')
}
