import { disguise, escape, pick, type Random } from './disguises.ts'

// What may stand in a path without making another path of it, for some reader. Each gives one random form.

/** A slash, or a character taken for one. */
export function slash(random: Random): string {
  return pick<() => string>(random, [
    () => '/',
    () => '/',
    () => '/',
    () => '//',
    () => escape(random, '/'),
    () => escape(random, '/'),
    () => disguise(random, '/'),
    () => pick(random, ['\\', escape(random, '\\')]),
    () => slash(random) + slash(random),
  ])()
}

/** `.` or `..` as a segment, or nearly: plain, in disguise, with parameters or blanks. */
export function dots(random: Random): string {
  const dot = (): string => (random() < 0.6 ? '.' : disguise(random, '.'))
  const segment = pick(random, [dot(), dot() + dot(), dot() + dot(), dot() + dot() + dot()])
  return random() < 0.3 ? segment + pick(random, [parameter, blank])(random) : segment
}

/** A name without a meaning, or one that some server knows. */
export function word(random: Random): string {
  const letters = Array.from({ length: 1 + Math.floor(random() * 3) }, () =>
    String.fromCharCode(97 + Math.floor(random() * 26)),
  ).join('')
  return pick(random, [
    'x',
    letters,
    letters,
    'a.b',
    'index.php',
    'login',
    'admin',
    'api',
    '7',
    '*',
    ':',
    '@',
    '~',
    '__proto__',
  ])
}

/** Steps aside and back: `x/../`, `./`, `x/..;/`. */
export function detour(random: Random): string {
  const aside = random() < 0.6 ? word(random) + slash(random) : ''
  return aside + dots(random) + slash(random)
}

/** `;name=value` as in matrix parameters; it may be empty or contain a slash. */
export function parameter(random: Random): string {
  const semicolon = random() < 0.6 ? ';' : disguise(random, ';')
  const value = pick<() => string>(random, [
    () => '',
    () => word(random),
    () => `${word(random)}=${word(random)}`,
    () => slash(random),
    () => slash(random) + word(random),
    () => dots(random),
    () => parameter(random),
  ])()
  return semicolon + value
}

/** White space and control characters, and other bytes that are dropped or stop a reader somewhere. */
export function blank(random: Random): string {
  const byte = pick<() => string>(random, [
    () =>
      pick(random, [' ', '\t', '\0', '\n', '\r', '\v', '\f', '\x1f', '\x7f', '\x85', '\xa0', '\r\n', '+']),
    () => String.fromCharCode(Math.floor(random() * 33)),
    () => String.fromCharCode(128 + Math.floor(random() * 128)),
    () =>
      pick(random, [
        '\xc2\xa0',
        '\xe2\x80\x8b',
        '\xef\xbb\xbf',
        '\xc2\xad',
        '\xe3\x80\x80',
        '\xcc\x81',
        '\xe2\x80\xa8',
      ]),
  ])()
  // A line end as it is would end the request line: that is another request and no spelling.
  return random() < 0.1 && !byte.includes('\n') ? byte : escape(random, byte)
}

/** Begins a query or a fragment, or something taken for one. */
export function query(random: Random): string {
  const mark = pick(random, ['?', '?', '#', disguise(random, '?'), disguise(random, '#')])
  return (
    mark +
    pick<() => string>(random, [
      () => '',
      () => word(random),
      () => slash(random) + word(random),
      () => detour(random),
    ])()
  )
}

/** `.json` and the like, and the dots and marks with which Windows' file names may end. */
export function extension(random: Random): string {
  return pick(random, [
    '.',
    '..',
    '.json',
    '.a.b',
    '.html',
    '.php',
    '.',
    '::$DATA',
    '~1',
    '.%00.html',
    ',',
    "'",
    '"',
    '!',
    '*',
    ')',
    '|',
  ])
}

/** What may stand before the path in a request line. */
export function authority(random: Random): string {
  const scheme = pick(random, ['http:', 'HTTP:', 'https:', 'ws:', 'file:', '', '', ''])
  const host = pick<() => string>(random, [
    () => 'localhost',
    () => 'localhost:80',
    () => 'u@h',
    () => word(random),
    () => '',
    () => '[::1]',
  ])()
  return scheme + pick(random, ['//', '//', '/', '///', '/\\', '\\\\', slash(random)]) + host
}
