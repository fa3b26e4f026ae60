const longest = 128
const groupLengths = [8, 4, 4, 4, 12]

/**
 * Returns a UUID without dashes. Reads all spellings that Python, Java, .NET and PostgreSQL accept: with `urn:uuid:` before it, braces
 * around it, dashes anywhere or nowhere, and groups without leading zeros.
 *
 * @param text in lower case
 * @returns undefined if the text is not a UUID
 */
export function uuidOf(text: string): string | undefined {
  if (text.length > longest || !mayBe.test(text)) return undefined
  const inner = text
    .replace(/urn:|uuid:/g, '')
    .replace(/^[{(]+/, '')
    .replace(/(?<![)}])[)}]+$/, '')
  const digits = inner.replaceAll('-', '')
  if (/^[0-9a-f]{32}$/.test(digits)) return digits
  const groups = inner.split('-')
  if (groups.length !== groupLengths.length || !groups.every((group) => /^[0-9a-f]+$/.test(group)))
    return undefined
  return groupLengths.map((length, i) => (groups[i] ?? '').padStart(length, '0').slice(-length)).join('')
}

const mayBe = /^[{(]*(?:[0-9a-f-]|urn:|uuid:)[^]{8}/
