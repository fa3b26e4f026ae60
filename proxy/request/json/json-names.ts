const backslash = 0x5c

/**
 * Whether a name is, folded, the one given. Mostly the first letter says so: there may be thousands of names.
 *
 * @returns undefined if there are escapes in it, or characters beyond ASCII
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
 * The letters and digits of a name, in the form in which names are compared. Case is folded as Unicode does it for `ſ` and the Kelvin
 * sign too.
 */
export function foldedName(name: string): string {
  return name
    .toUpperCase()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}]/gu, '')
}
