import { isScalar, parseDocument, visit, type Document } from 'yaml'

/** A mistake in a value, and the offset in the text where the value is. */
type Mistake = { readonly offset: number; readonly text: string }

/** Matches `${NAME}` and `${NAME:-default}`, and a `${` that begins neither. After another `$`, each of them is plain text. */
const reference = /\$?\$\{(?:([A-Za-z_][A-Za-z0-9_]*)(?::-((?:[^}$]|\$(?!\{))*))?\})?/g

/**
 * Replaces references to variables in a document: in values, not in the names of fields. The values of variables never change the
 * document's structure. Without quotes, a number, a boolean or null is read as such, so that `port: ${PORT}` is a number; in quotes, and in
 * any other case, the result is text.
 *
 * @returns a mistake for each variable that is unset or empty and has no default, and for each value with a `${` that does not begin a
 *   variable
 */
export function putEnvironment(document: Document, env: NodeJS.ProcessEnv): Mistake[] {
  const mistakes: Mistake[] = []
  visit(document, {
    Scalar(key, node) {
      const { value } = node
      if (key === 'key' || typeof value !== 'string' || !value.includes('${')) return
      const fail = (text: string): void => void mistakes.push({ offset: node.range?.[0] ?? 0, text })
      if ([...value.matchAll(reference)].some(([written, name]) => name === undefined && !isText(written))) {
        fail('${ does not begin a variable: write ${NAME} or ${NAME:-default}, or $${ for the text ${')
        return
      }
      const text = value.replace(reference, (written, name: string, otherwise: string | undefined) => {
        if (isText(written)) return written.slice(1)
        const found = env[name] || otherwise
        if (found === undefined)
          fail(`the variable ${name} is not set: set it, or write \${${name}:-default}`)
        return found ?? ''
      })
      if (text === value) return
      node.value = node.type === 'PLAIN' ? readPlain(text) : text
      node.source = text
    },
  })
  return mistakes
}

function isText(written: string): boolean {
  return written.startsWith('$$')
}

/** Reads a text as a number, a boolean or null if it is one as a whole. A comment, an anchor or a tag in it is text. */
function readPlain(text: string): unknown {
  if (text.includes('\n')) return text
  const { contents } = parseDocument(text, { prettyErrors: false })
  const isWhole = isScalar(contents) && contents.type === 'PLAIN' && contents.source === text.trim()
  return isWhole ? contents.value : text
}
