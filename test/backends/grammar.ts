import { disguise, escape, pick, type Random } from './disguises.ts'

// Text that can be inserted into a path without changing it for some reader. Each function returns one random form.

/** A slash, or a character that some reader takes for one. */
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

/** `.` or `..` as a segment, or nearly: plain, disguised, with parameters or blanks. */
export function dots(random: Random): string {
  const dot = (): string => (random() < 0.6 ? '.' : disguise(random, '.'))
  const segment = pick(random, [dot(), dot() + dot(), dot() + dot(), dot() + dot() + dot()])
  return random() < 0.3 ? segment + pick(random, [parameter, blank])(random) : segment
}

/** A name without a meaning, or one that is special to some server. */
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

/** Steps into a segment and back: `x/../`, `./`, `x/..;/`. */
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

/** White space, control characters, and other bytes that some reader drops or stops at. */
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
  // A literal line end would end the request line and begin another request.
  return random() < 0.1 && !byte.includes('\n') ? byte : escape(random, byte)
}

/** The beginning of a query or a fragment, or text that some reader takes for one. */
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

/** `.json` and similar extensions, and the dots and characters that Windows ignores at the end of a file name. */
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

/** Text that may precede the path in a request line. */
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
