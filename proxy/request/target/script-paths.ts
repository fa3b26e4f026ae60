// Readings of a path by servers that know files: scripts, their directories, and extensions.

const script = String.raw`\.(?:php[0-9s]?|phtml|phar|f?cgi|pl|py|rb|lua|aspx?|as[hm]x|svc|cf[mc]|shtml)`
const scriptName = new RegExp(`${script}$`)
const indexName = new RegExp(`^index${script}$`)

/** Found in a folded path where `scriptPaths` gives something for it. */
export const hasScript = new RegExp(`${script}/|/index${script}$|/cgi-bin/[^/]*/`)

/** The same for most paths with an extension, at less cost: whether it is worth a look. */
export function mayHaveScript(path: string): boolean {
  return (path.indexOf('.') < path.lastIndexOf('/') || path.includes('/index.')) && hasScript.test(path)
}

/** Maximum scripts that are considered in one path. */
const maxScripts = 4

/**
 * Returns the paths to scripts. A script may be followed by its PATH_INFO: `/login.php/x` is `/login.php`, and to a front controller
 * `/index.php/x` is `/x`. The index of a directory is the directory.
 *
 * @param names the segments of a path, without empty ones
 * @returns the segments of other paths that it may be
 */
export function scriptPaths(names: readonly string[]): string[][] {
  const paths: string[][] = []
  for (const [i, name] of names.entries()) {
    if (paths.length >= 2 * maxScripts) break
    const isLast = i === names.length - 1
    const isScript = scriptName.test(name)
    if (!isScript && (isLast || names[i - 1] !== 'cgi-bin')) continue
    if (!isLast) paths.push(names.slice(0, i + 1))
    if (isScript && (!isLast || indexName.test(name))) paths.push(names.toSpliced(i, 1))
  }
  return paths
}

/** Maximum extensions of a name: they begin at its first dots, and at the last one. */
const MAX_EXTENSIONS = 8
const none: readonly string[] = Object.freeze([])

/**
 * Routers that take a format from the path: for Rails' `(.:format)` it begins at the last dot, for Spring's suffix patterns (`/login.*`)
 * and Symfony's `/login.{_format}` at any.
 *
 * @returns the path without each extension that its last segment may have, that at the last dot first
 */
export function withoutExtensions(path: string): readonly string[] {
  const last = path.lastIndexOf('.')
  const nameStart = path.lastIndexOf('/') + 1
  if (last <= nameStart) return none
  const paths = [path.slice(0, last)]
  let dot = path.indexOf('.', nameStart + 1)
  for (let dots = 0; dot < last && dots < MAX_EXTENSIONS; dots++) {
    paths.push(path.slice(0, dot))
    dot = path.indexOf('.', dot + 1)
  }
  return paths
}
