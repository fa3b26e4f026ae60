import { isScalar, parseDocument, visit, type Document } from 'yaml'

/** A mistake in a value, and the offset in the text where the value is. */
type Mistake = { readonly offset: number; readonly text: string }

/** `${NAME}` or `${NAME:-default}`, or a `${` that begins neither; with another `$` before it, it is text. */
const reference = /\$?\$\{(?:([A-Za-z_][A-Za-z0-9_]*)(?::-((?:[^}$]|\$(?!\{))*))?\})?/g

/**
 * Puts the values of variables where a document names them: in values, not in the names of fields. They never change its
 * structure. A value without quotes is read as if it stood there, so that `port: ${PORT}` is a number; one in quotes is text.
 *
 * @returns each variable that is unset or empty and has no default, and each value with a `${` that begins no variable
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

function readPlain(text: string): unknown {
  if (text.includes('\n')) return text
  const { contents, errors } = parseDocument(text, { prettyErrors: false })
  return errors.length === 0 && isScalar(contents) && contents.type === 'PLAIN' ? contents.value : text
}
