import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'
import { describe, expect, test } from 'vitest'
import { directoryWith, loadWithFile, problemsOf } from '../../support/gateway/settings.ts'

const root = join(import.meta.dirname, '../../..')

function read(folder: string, ending: RegExp): { readonly name: string; readonly text: string }[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => ending.test(name))
    .map((name) => ({ name: `${folder}/${name}`, text: readFileSync(join(root, folder, name), 'utf8') }))
}

/** The pieces of a text in the source, split where values are inserted. */
function piecesOf(node: ts.Node): string[] | undefined {
  if (ts.isStringLiteral(node) || ts.isNoSubstitutionTemplateLiteral(node)) return [node.text]
  if (!ts.isTemplateExpression(node)) return undefined
  return [node.head.text, ...node.templateSpans.map(({ literal }) => literal.text)]
}

/** All texts of at least three words that `validate` may print. */
function messagesIn({ name, text }: { readonly name: string; readonly text: string }): string[][] {
  const found: string[][] = []
  const visit = (node: ts.Node): void => {
    // Skips the names of modules and types, and the texts of the settings reference.
    if (ts.isImportDeclaration(node) || ts.isTypeNode(node)) return
    if (ts.isPropertyAssignment(node) && /^(?:description|needs)$/.test(node.name.getText())) return
    const pieces = piecesOf(node)
    if (pieces && !pieces[0]?.startsWith('^') && pieces.join(' ').trim().split(/\s+/).length >= 3)
      found.push(pieces)
    ts.forEachChild(node, visit)
  }
  ts.forEachChild(ts.createSourceFile(name, text, ts.ScriptTarget.Latest, true), visit)
  // A sentence that ends in a full stop describes a setting.
  return found.filter((pieces) => !/^[A-Za-z-]+[ :,[][^]*\.$/.test(pieces.join('…')) || pieces.length > 1)
}

/**
 * The texts that a test file expects from the program: arguments of matchers, the rows of tables, and the variables that these name.
 * Comments and arguments of the program do not count.
 */
function expectedIn({ name, text }: { readonly name: string; readonly text: string }): string[] {
  // The first lines of a file in `mistakes` give its messages word for word, and mistakes.test.ts compares them.
  if (name.endsWith('.yaml')) return name.includes('/mistakes/') ? (/^(?:#.*\n)+/.exec(text) ?? []) : []
  const found: string[] = []
  const source = ts.createSourceFile(name, text, ts.ScriptTarget.Latest, true)
  const declared = new Map<string, ts.Node>()
  const declare = (node: ts.Node): void => {
    if (ts.isVariableDeclaration(node) && node.initializer)
      declared.set(node.name.getText(), node.initializer)
    ts.forEachChild(node, declare)
  }
  declare(source)
  const collect = (node: ts.Node): void => {
    if (ts.isIdentifier(node)) {
      const value = declared.get(node.text)
      declared.delete(node.text)
      if (value) collect(value)
    }
    if (ts.isRegularExpressionLiteral(node)) found.push(node.text)
    const pieces = piecesOf(node)
    if (pieces) found.push(node.getText(), pieces.join('…'))
    ts.forEachChild(node, collect)
  }
  const visit = (node: ts.Node): void => {
    if (ts.isCallExpression(node) && ts.isPropertyAccessExpression(node.expression)) {
      const { name: method } = node.expression
      if (/^(?:to[A-Z]\w*|each|for|waitForLine)$/.test(method.text)) node.arguments.forEach(collect)
    }
    ts.forEachChild(node, visit)
  }
  visit(source)
  return found
}

function patternOf(pieces: readonly string[]): RegExp {
  const ends = /^[\s:;,]+|[\s:;,]+$/g
  // In the text or pattern of a test, quotes and brackets may be escaped.
  const escaped = pieces.map((piece) =>
    piece
      .replace(ends, '')
      .replace(/[.*+?^${}()|[\]\\'"]/g, (mark) => `\\\\*${/['"]/.test(mark) ? mark : `\\${mark}`}`),
  )
  return new RegExp(escaped.join('.*'))
}

/** Whether a file may contain a message: it contains the longest word of the message, which has no character that may be escaped. */
function mayBeIn(text: string): (pieces: readonly string[]) => boolean {
  return (pieces) => {
    const words = pieces.join(' ').match(/[A-Za-z]+/g) ?? []
    return text.includes(words.toSorted((a, b) => b.length - a.length)[0] ?? '')
  }
}

/** No file can cause this message, so no test can expect it. */
function isOfPackage([text]: readonly string[]): boolean {
  return text === 'package.json is missing'
}

test('each message of validate is expected by a test', () => {
  const sources = [...read('proxy/config', /\.ts$/), ...read('shared/settings', /\.ts$/)].filter(
    // Leaves out files with descriptions of settings, which are not messages about mistakes.
    ({ name }) => !name.endsWith('settings-table.ts') && !name.endsWith('sluice-yaml.ts'),
  )
  const messages = sources.flatMap((source) => messagesIn(source))
  expect(messages.length).toBeGreaterThan(150)
  let untested = messages.filter((pieces) => !isOfPackage(pieces))
  // The first folder has nearly all messages. Files that contain none of the remaining ones are not parsed.
  for (const folder of ['test/unit/config', 'test/unit/shared', 'test/e2e', 'test/long']) {
    const files = read(folder, /\.(?:ts|yaml)$/).filter(({ text }) => untested.some(mayBeIn(text)))
    const tests = files.flatMap(expectedIn).join('\n')
    untested = untested.filter((pieces) => !patternOf(pieces).test(tests))
  }
  expect(untested.map((pieces) => pieces.join('…'))).toEqual([])
})

describe('messages that need more than a line of a file', () => {
  test.each([
    [
      { REDIS_URL: 'redis://127.0.0.1:6379?sentinelPassword=x' },
      'REDIS_URL: sentinelPassword: has no effect, needs redis+sentinel://',
    ],
    [
      { REDIS_URL: 'redis+sentinel://127.0.0.1/main?sentinelUsername=x' },
      'REDIS_URL: sentinelPassword: missing, required with sentinelUsername',
    ],
    [
      { PROXY_PROTOCOL: 'true' },
      'TRUSTED_PROXIES: missing, required with the PROXY protocol: the proxies that send it',
    ],
  ])('%j', (env, message) => {
    expect(problemsOf(env)).toEqual([message])
  })

  test.each(['allowList', 'limits'])('a list of too many clients in %s', (place) => {
    const ip = Array.from({ length: 10_001 }, (_, i) => `10.${i >> 8}.${i & 255}.1`)
    const entries = JSON.stringify(ip.map((each) => ({ ip: each })))
    const rule = `{ name: a, match: GET /a, requests: 1, window: 1m, overrides: [{ clients: ${entries}, requests: 2 }] }`
    const cwd = directoryWith(place === 'limits' ? `limits: [${rule}]` : `allowList: ${entries}`)
    expect(problemsOf({}, cwd).join('\n')).toContain('needs at most 10000 entries')
  })

  test.each([
    ['allowList', 'every client is on the list, so no rule applies to anybody'],
    ['denyList', 'every client is on the list, so every request is refused'],
  ])('%s of everybody', (list, warning) => {
    const { warnings } = loadWithFile(`${list}: [{ ip: [0.0.0.0/0, '::/0'] }]`)
    expect(warnings.join('\n')).toContain(warning)
  })
})
