import { join } from 'node:path'

/** The kind of a text: a query with a parameter `user`, a `Cookie` header with a cookie `sid`, or a number that identifies a client. */
export type Source = 'query' | 'cookie' | 'whole number' | 'number' | 'uuid'

/** A library that reads a value, called as its users call it. It reads and writes JSON, see the scripts. */
export type ValueReader = {
  readonly name: string
  readonly source: Source
  readonly program: string
  readonly script: string
  readonly reader: string
  /** Debian's package, and a command that succeeds if it is installed. Undefined for npm packages and Debian's base system. */
  readonly needs?: { readonly name: string; readonly check: readonly [string, ...string[]] }
}

const python = '/usr/bin/python3'

function onNode(reader: string, source: Source): ValueReader {
  return { name: `${reader} (Node)`, source, program: process.execPath, script: 'node.js', reader }
}

function onPython(reader: string, source: Source, module?: string): ValueReader {
  const needs =
    module === undefined
      ? {}
      : { needs: { name: `python3-${module}`, check: [python, '-c', `import ${module}`] } as const }
  return { name: `${reader} (Python)`, source, program: python, script: 'python.py', reader, ...needs }
}

function onRuby(reader: string, source: Source): ValueReader {
  const needs = { name: 'ruby-rack', check: ['ruby', '-e', 'require "rack"'] } as const
  return { name: `Rack, ${reader} (Ruby)`, source, program: 'ruby', script: 'rack.rb', reader, needs }
}

function onPerl(reader: string, source: Source): ValueReader {
  const needs = { name: 'libcgi-pm-perl', check: ['perl', '-MCGI', '-e', '1'] } as const
  return { name: `CGI.pm, ${reader} (Perl)`, source, program: 'perl', script: 'cgi.pl', reader, needs }
}

function onPhp(reader: string, source: Source): ValueReader {
  const needs = { name: 'php-cli', check: ['php', '--version'] } as const
  return { name: `${reader} (PHP)`, source, program: 'php', script: 'php.php', reader, needs }
}

export const valueReaders: readonly ValueReader[] = [
  ...[onNode('qs', 'query'), onNode('h3', 'query'), onNode('cookie', 'cookie')],
  ...[onNode('h3-cookie', 'cookie'), onNode('koa', 'cookie')],
  ...[onRuby('query', 'query'), onRuby('cookie', 'cookie')],
  ...[onPython('webob-query', 'query', 'webob'), onPython('webob-cookie', 'cookie', 'webob')],
  ...[
    onPython('http.cookies', 'cookie'),
    onPerl('query', 'query'),
    onPerl('cookie', 'cookie'),
    onPhp('query', 'query'),
  ],
  ...[
    onPython('flask-int', 'whole number', 'flask'),
    onPython('int', 'whole number'),
    onNode('Number', 'whole number'),
  ],
  ...[
    onRuby('Integer', 'whole number'),
    onNode('parseInt', 'number'),
    onRuby('to_i', 'number'),
    onPhp('intval', 'number'),
  ],
  onPython('uuid', 'uuid'),
]

export const readersFolder = join(import.meta.dirname, 'readers')
