import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'

const root = join(import.meta.dirname, '../..')

type Source = { readonly file: string; readonly imports: readonly Import[] }
type Import = { readonly target: string; readonly typeOnly: boolean }

const importLine = /^(?:import|export)\s+(type\s+)?(?:[^'"]*?\sfrom\s+)?['"]([^'"]+)['"]/gm

function sourcesIn(...folders: string[]): Source[] {
  return folders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => {
        const file = join(folder, name)
        const text = readFileSync(join(root, file), 'utf8')
        const imports = [...text.matchAll(importLine)].map(([, type, specifier = '']) => ({
          target: specifier.startsWith('.')
            ? relative(root, resolve(root, dirname(file), specifier))
            : specifier,
          typeOnly: type !== undefined,
        }))
        return { file, imports }
      }),
  )
}

const sources = sourcesIn('proxy', 'origin', 'shared')

/** The places where a file matching `from` imports one matching `to`, as `file → target`. */
function arrows(from: RegExp, to: RegExp, kinds: 'all' | 'values' = 'all'): string[] {
  return sources
    .filter(({ file }) => from.test(file))
    .flatMap(({ file, imports }) =>
      imports
        .filter(({ target, typeOnly }) => to.test(target) && (kinds === 'all' || !typeOnly))
        .map(({ target }) => `${file} → ${target}`),
    )
}

const steps = 'target|client-address|rules|charges|forward|refuse|tunnel'

describe('imports point one way', () => {
  test('proxy and origin never import each other, and shared imports neither', () => {
    expect(arrows(/^proxy\//, /^origin\//)).toEqual([])
    expect(arrows(/^origin\//, /^proxy\//)).toEqual([])
    expect(arrows(/^shared\//, /^(proxy|origin)\//)).toEqual([])
  })

  test('steps do not import each other', () => {
    const step = new RegExp(`^proxy/(${steps})\\.ts$`)
    expect(arrows(step, step, 'values')).toEqual([])
  })

  test('nothing below the handler imports it, and only main imports the composition', () => {
    expect(arrows(/^proxy\/(?!listener|compose)/, /^proxy\/handler\.ts$/, 'values')).toEqual([])
    expect(arrows(/^proxy\/(?!main\.ts|compose)/, /^proxy\/compose/, 'values')).toEqual([])
    expect(arrows(/./, /(^|\/)main\.ts$/)).toEqual([])
  })

  test('clients of Redis and servers are made at the composition root', () => {
    expect(arrows(/^proxy\/(?!compose)/, /redis-connection\.ts$/, 'values')).toEqual([])
    const making = /\b(?:createServer|createSecureServer)\(/
    const makers = sources.filter(({ file }) => making.test(readFileSync(join(root, file), 'utf8')))
    expect(makers.map(({ file }) => file).filter((file) => !/\/compose[a-z-]*\.ts$/.test(file))).toEqual([])
  })

  test('each library stays behind its own files', () => {
    const owners: readonly [string, RegExp][] = [
      ['rate-limiter-flexible', /^proxy\/admin\/token-guesses\.ts$/],
      ['ioredis', /^proxy\/limiter\/redis-[a-z]+\.ts$/],
      ['prom-client', /^proxy\/admin\/prometheus\.ts$/],
      ['yaml', /^proxy\/config\//],
      ['pino', /^shared\/log\.ts$/],
      ['commander', /^origin\/keys\.ts$/],
      ['node:sqlite', /^origin\/key-database\.ts$/],
    ]
    for (const [library, owner] of owners) {
      const users = sources.filter(({ imports }) => imports.some(({ target }) => target === library))
      expect(users.length, library).toBeGreaterThan(0)
      expect(
        users.map(({ file }) => file).filter((file) => !owner.test(file)),
        library,
      ).toEqual([])
    }
  })
})
