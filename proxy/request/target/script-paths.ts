// Readings of a path by servers that map it to files: scripts, their directories, and extensions.

const script = String.raw`\.(?:php[0-9s]?|phtml|phar|f?cgi|pl|py|rb|lua|aspx?|as[hm]x|svc|cf[mc]|shtml)`
const scriptName = new RegExp(`${script}$`)
const indexName = new RegExp(`^index${script}$`)

/** Matches a folded path for which `scriptPaths` returns other paths. */
export const hasScript = new RegExp(`${script}/|/index${script}$|/cgi-bin/[^/]*/`)

/** Whether a path matches `hasScript`. Costs less for most paths with an extension. */
export function mayHaveScript(path: string): boolean {
  return (path.indexOf('.') < path.lastIndexOf('/') || path.includes('/index.')) && hasScript.test(path)
}

/** Maximum number of scripts to consider in one path. */
const maxScripts = 4

/**
 * Returns the paths of the scripts that may handle a path. PATH_INFO may follow a script: `/login.php/x` is `/login.php`, and for a front
 * controller `/index.php/x` is `/x`. The index of a directory is the directory.
 *
 * @param names the segments of a path, without empty ones
 * @returns the segments of each other path that the path may stand for
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

/** Maximum number of extensions of a name, which begin at its first dots; one more begins at its last dot. */
const MAX_EXTENSIONS = 8
const none: readonly string[] = Object.freeze([])

/**
 * Returns a path without the extension that a router may read as a format. For Rails' `(.:format)` it begins at the last dot, for Spring's
 * suffix patterns (`/login.*`) and Symfony's `/login.{_format}` at any dot.
 *
 * @returns the path without each possible extension of its last segment; the one at the last dot comes first
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
