const plainWord = /^(?:[g-z]|[a-f][a-f\d-]*[g-z_/~])[a-z\d_/~-]*(?:\.[a-z\d_/~-]*)?$|^[a-f][a-f\d]*$/
const MAX_LENGTH = 31

/**
 * Whether a text in lower case has only one spelling: it is not a number, a UUID, a JSON Web Token with its two dots, or a word so long
 * that only its letters are compared.
 */
export function isPlainWord(text: string): boolean {
  return text.length <= MAX_LENGTH && plainWord.test(text)
}
