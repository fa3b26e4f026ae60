import { isScalar, parseDocument, visit, type Document } from 'yaml'

/** A variable that a file names and that has no value, and the offset in the text of where it is named. */
export type MissingVariable = { readonly offset: number; readonly name: string }

/** `${NAME}`, `${NAME:-default}`; with another `$` before it, it is text. */
const reference = /\$?\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}/g

/**
 * Puts the values of variables where a document names them: in values, not in the names of fields. They never change its
 * structure. A value without quotes is read as if it stood there, so that `port: ${PORT}` is a number; one in quotes is text.
 *
 * @returns the variables that are unset or empty and have no default
 */
export function putEnvironment(document: Document, env: NodeJS.ProcessEnv): MissingVariable[] {
  const missing: MissingVariable[] = []
  visit(document, {
    Scalar(key, node) {
      const { value } = node
      if (key === 'key' || typeof value !== 'string' || !value.includes('${')) return
      const text = value.replace(reference, (written, name: string, otherwise: string | undefined) => {
        if (written.startsWith('$$')) return written.slice(1)
        const found = env[name] || otherwise
        if (found === undefined) missing.push({ offset: node.range?.[0] ?? 0, name })
        return found ?? ''
      })
      if (text !== value) node.value = node.type === 'PLAIN' ? readPlain(text) : text
    },
  })
  return missing
}

function readPlain(text: string): unknown {
  if (text.includes('\n')) return text
  const { contents, errors } = parseDocument(text, { prettyErrors: false })
  return errors.length === 0 && isScalar(contents) && contents.type === 'PLAIN' ? contents.value : text
}
