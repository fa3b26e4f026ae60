import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** A wording that readers must read twice, and its replacement. */
export type Wording = {
  readonly name: string
  readonly pattern: RegExp
  readonly instead: string
}

export type Finding = { readonly line: number; readonly text: string; readonly wording: Wording }

const verbs = 'is|are|was|were|has|have|had|comes|came|waits|stands|follows'

/** The words after which a clause with `who` or `which` has no noun to refer to. */
const noNoun = String.raw`(?:^|[.:;(*\`'"]|\b(?:of|to|by|for|and|or|but|from|with|as|than|where|only))`

export const wordings: readonly Wording[] = [
  {
    name: 'headless clause',
    pattern: new RegExp(String.raw`(?:\bwhat|${noNoun}\s*\b(?:who|whoever|which)) (?:${verbs})\b`, 'i'),
    instead: 'name the thing: "the bytes received", "the remaining quota", "a client on the list"',
  },
  {
    name: 'X of HTTP',
    pattern:
      /\bof HTTPS?(?:\/[\d.]+)?(?! [a-z]*(?:s|status|version|server|client|backend|engine)\b)(?![/\w]|\.\d)/,
    instead: 'an HTTP/2 client, the HTTP status',
  },
  {
    name: 'MOST_, LEAST_, LONGEST_',
    pattern:
      /\b[A-Z_]*(?:MOST|LEAST|LONGEST|SHORTEST|LARGEST)(?:_[A-Z]+)+\b|\b[A-Z]+_AT_MOST\b|\bconst (?:most|least|longest)[A-Z]/,
    instead: 'MAX_, MIN_, with a unit',
  },
  {
    name: 'is none',
    pattern: /\b(?<!\bthere )(?:is|are) none\b/i,
    instead: 'is not one, is missing, without one',
  },
  {
    name: 'is to be',
    pattern: /\b(?:is|are|was|were) to be\b/i,
    instead: 'must be, or an imperative',
  },
  {
    name: 'also if',
    pattern: /(?:[,:;] |\b(?:are|is) (?:\w+ )?)also (?:after|for|if|of|when|where|with|without)\b/i,
    instead: 'even if, even after, including, too',
  },
  {
    name: 'that which',
    pattern: /\bthat which\b/i,
    instead: 'the one that, or name the thing again',
  },
  {
    name: 'says none, finds no room',
    pattern: /\b(?:says? none|finds? no (?:room|memory|unit|place))\b/i,
    instead: 'states no number, does not fit into memory',
  },
  {
    name: 'behind for after',
    pattern:
      /\bbehind (?:an?|the|another|each|its) (?:[a-z]+ )?(?:backslash|blank|body|boundary|byte|character|charset|chunk|colon|comma|field|header|length|line|name|prefix|quote|request|response|semicolon|size|space|string|tab|value|word)s?\b/,
    instead: 'after: only proxies and networks have something behind them',
  },
  {
    name: 'in force',
    pattern: /\bin force\b/i,
    instead: 'current, in effect, takes effect; an entry that has not expired; a setting that applies',
  },
  {
    name: 'comment without a subject',
    pattern: /\/\*\* (?:As|Of(?! these,)|So (?:long|many)|That of|Those|Whose) /,
    instead: 'begin with a subject or a verb: "The length of", "Does what … does"',
  },
  {
    name: 'title that continues the one before',
    pattern:
      /\b(?:test|it|describe)(?:\.\w+)*(?:\(.*\))?\(\s*['"`](?:nor|so do|so does|but|also|likewise|and) /,
    instead: 'a sentence that stands alone',
  },
  {
    name: 'comment over 140 columns',
    pattern: /^(?=.{141})\s*(?:\/\*\*|\*|\/\/) /,
    instead: 'break the line',
  },
]

/** Text that matches a wording above but is correct: quotations and terms. */
const exceptions = [
  '(which is 0)',
  // A log line of earlier versions, which test/long/two-versions.test.ts waits for.
  'are not in force) here',
]

/**
 * Finds the wordings in the lines of a file.
 *
 * @internal exported for its test
 */
export function findWordings(text: string): Finding[] {
  return text.split('\n').flatMap((line, index) => {
    const own = exceptions.reduce((rest, exception) => rest.replaceAll(exception, ''), line)
    const found = wordings.filter(({ pattern }) => pattern.test(own))
    return found.map((wording) => ({ line: index + 1, text: line.trim(), wording }))
  })
}

/** Files that contain the wordings themselves, and a generated one: its text comes from the settings. */
const excluded = new Set([
  'scripts/plain-words.ts',
  'test/repo/plain-words.test.ts',
  'proxy/config/written/sluice-yaml.ts',
])

/** Finds the wordings in all files of this repository that people read, including files not committed yet. */
export function findInRepository(): (Finding & { readonly path: string })[] {
  const root = join(import.meta.dirname, '..')
  const kinds = ['*.md', '*.ts', '*.js', '*.css', '*.html', '*.yaml']
  const list = ['ls-files', '--cached', '--others', '--exclude-standard', '--', ...kinds]
  return execFileSync('git', list, { encoding: 'utf8', cwd: root })
    .split('\n')
    .filter((path) => path !== '' && !excluded.has(path) && existsSync(join(root, path)))
    .flatMap((path) =>
      findWordings(readFileSync(join(root, path), 'utf8')).map((finding) => ({ path, ...finding })),
    )
}
