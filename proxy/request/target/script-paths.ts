// Readings of a path by servers that map it to files, scripts, their directories, and extensions; and by frameworks that serve a page under
// several paths.

const script = String.raw`\.(?:php[0-9s]?|phtml|phar|f?cgi|pl|py|rb|lua|aspx?|as[hm]x|svc|cf[mc]|shtml)`
const scriptName = new RegExp(`${script}$`)
const indexName = new RegExp(`^index${script}$`)

/** Names after the path of a page, under which frameworks serve its data for navigation by scripts. */
const dataNames = ['__data.json', '_payload.json', 'q-data.json', '_root.data', '_.data']
const isData = String.raw`/(?:__data|_payload|q-data)\.json$|\.data$|/_next/data/`

/** Extensions of a view of Jakarta Faces. */
const viewExtensions = ['.xhtml', '.jsf', '.faces']
const isView = String.raw`\.(?:xhtml|jsf|faces)$`

/** Matches a folded path for which `scriptPaths` may return other paths. */
export const hasScript = new RegExp(`${script}/|/index${script}$|/cgi-bin/[^/]*/|${isData}|${isView}`)

/** Whether a path matches `hasScript`. Costs less for most paths with an extension. */
export function mayHaveScript(path: string): boolean {
  if (path.indexOf('.') < path.lastIndexOf('/') || path.includes('/index.')) return hasScript.test(path)
  return endsLikePage(path) && hasScript.test(path)
}

/** Whether a path has an extension of a page or its data. Costs less than a regular expression. */
function endsLikePage(path: string): boolean {
  return (
    path.endsWith('.json') ||
    path.endsWith('.data') ||
    path.endsWith('.xhtml') ||
    path.endsWith('.jsf') ||
    path.endsWith('.faces')
  )
}

/** Maximum number of scripts to consider in one path. */
const MAX_SCRIPTS = 4

/**
 * Returns the paths of the scripts that may handle a path. PATH_INFO may follow a script: `/login.php/x` is `/login.php`, and for a front
 * controller `/index.php/x` is `/x`. The index of a directory is the directory. The data of a page is the page, and a view of Jakarta Faces
 * has several paths.
 *
 * @param names the segments of a path, without empty ones
 * @returns the segments of each other path that the path may stand for
 */
export function scriptPaths(names: readonly string[]): string[][] {
  const paths: string[][] = []
  for (const [i, name] of names.entries()) {
    if (paths.length >= 2 * MAX_SCRIPTS) break
    const isLast = i === names.length - 1
    const isScript = scriptName.test(name)
    if (!isScript && (isLast || names[i - 1] !== 'cgi-bin')) continue
    if (!isLast) paths.push(names.slice(0, i + 1))
    if (isScript && (!isLast || indexName.test(name))) paths.push(names.toSpliced(i, 1))
  }
  return [...paths, ...pagesOfData(names), ...viewPaths(names)]
}

/**
 * Returns the pages whose data a path is: `/search/__data.json` of SvelteKit, `/search/_payload.json` of Nuxt, `/search/q-data.json` of
 * Qwik, `/search.data` of React Router, and `/_next/data/BUILD/search.json` of the pages router of Next.js. There the data of `/` and of
 * `/index` can have the same path.
 */
function pagesOfData(names: readonly string[]): string[][] {
  const last = names.at(-1) ?? ''
  const before = names.slice(0, -1)
  if (dataNames.includes(last)) return [before]
  if (last.endsWith('.data')) return [[...before, last.slice(0, -'.data'.length)]]
  const next = names.indexOf('_next')
  if (next === -1 || names[next + 1] !== 'data' || names.length < next + 4 || !last.endsWith('.json'))
    return []
  const page = [...before.toSpliced(next, 3), last.slice(0, -'.json'.length)]
  return page.at(-1) === 'index' ? [page, page.slice(0, -1)] : [page]
}

/** Returns the paths of a view of Jakarta Faces, whose servlet Mojarra and MyFaces map to `/faces/*`, `*.xhtml`, `*.jsf` and `*.faces`. */
function viewPaths(names: readonly string[]): string[][] {
  const last = names.at(-1) ?? ''
  const extension = viewExtensions.find((suffix) => last.endsWith(suffix))
  if (extension === undefined) return []
  const before = names.slice(0, -1)
  const prefix = before.indexOf('faces')
  const folder = prefix === -1 ? before : before.toSpliced(prefix, 1)
  return viewExtensions.map((other) => [...folder, last.slice(0, -extension.length) + other])
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
