const plainWord = /^(?:[g-z]|[a-f][a-f\d-]*[g-z_/~])[a-z\d_/~-]*(?:\.[a-z\d_/~-]*)?$|^[a-f][a-f\d]*$/
const MAX_LENGTH = 31

/**
 * Whether a text in lower case has no other spelling: it is no number, no UUID, no JSON Web Token, which has two dots, and no word so long
 * that only its letters count.
 */
export function isPlainWord(text: string): boolean {
  return text.length <= MAX_LENGTH && plainWord.test(text)
}
