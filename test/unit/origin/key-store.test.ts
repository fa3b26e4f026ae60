import { randomBytes } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openKeyStore, type KeyStore } from '../../../origin/key-store.ts'
import { SettingsError } from '../../../shared/settings/settings-error.ts'
import { runNode, spawnNode } from '../../support/gateway/process.ts'

let directory: string
let file: string
let opened: KeyStore[]
let clock: Date

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'sluice-keys-'))
  file = join(directory, 'made', 'on', 'the', 'way', 'origin.db')
  opened = []
  clock = new Date('2026-05-01T10:20:30.456Z')
})

afterEach(() => {
  for (const store of opened) store.close()
  rmSync(directory, { recursive: true })
})

function open(path = file): KeyStore {
  const store = openKeyStore(path, { now: () => clock, randomBytes })
  opened.push(store)
  return store
}

function problemOf(work: () => unknown): string {
  try {
    work()
  } catch (error) {
    if (error instanceof SettingsError) return error.problems.join('\n')
    throw error
  }
  throw new Error('no problem was found')
}

describe('a key', () => {
  test('a key leads to its environment', () => {
    const store = open()
    const made = store.createKey('Shop', 'production')
    expect(made).toEqual({
      id: expect.stringMatching(/^[0-9a-f]{24}$/) as string,
      key: expect.stringMatching(/^sluice_[A-Za-z0-9_-]{43}$/) as string,
      project: 'Shop',
      type: 'production',
      createdAt: '2026-05-01T10:20:30.456Z',
      revokedAt: null,
    })
    expect(store.findEnvironment(made.key)).toEqual({
      id: expect.stringMatching(/^[0-9a-f]{24}$/) as string,
      createdAt: '2026-05-01T10:20:30.456Z',
      updatedAt: '2026-05-01T10:20:30.456Z',
      type: 'production',
      project: { id: expect.stringMatching(/^[0-9a-f]{24}$/) as string, name: 'Shop' },
      appSetupCompleted: false,
      websiteSetupCompleted: false,
    })
  })

  test('a key is found only by its exact text', () => {
    const store = open()
    const { id, key } = store.createKey('Shop', 'production')
    for (const other of [
      '',
      id,
      'sluice_',
      key.slice(0, -1),
      `${key}A`,
      ` ${key}`,
      key.toUpperCase(),
      `${key}\0`,
    ])
      expect(store.findEnvironment(other), other).toBeUndefined()
  })

  test('a key is nowhere in the files, and they are private', () => {
    const { key } = open().createKey('Shop', 'production')
    const files = readdirSync(join(file, '..'))
    expect(files).toEqual(['origin.db', 'origin.db-shm', 'origin.db-wal'])
    for (const name of files) {
      const path = join(file, '..', name)
      expect(readFileSync(path).includes(key.slice('sluice_'.length)), name).toBe(false)
      expect(readFileSync(path).includes(Buffer.from(key.slice('sluice_'.length), 'base64url')), name).toBe(
        false,
      )
      expect(statSync(path).mode & 0o777, name).toBe(0o600)
    }
  })

  test('a key shares the environment with others of its project and type', () => {
    const store = open()
    const environmentOf = (project: string, type: 'production' | 'development') =>
      store.findEnvironment(store.createKey(project, type).key)
    const first = environmentOf('Shop', 'production')
    const otherType = environmentOf('Shop', 'development')
    expect(environmentOf('Shop', 'production')).toEqual(first)
    expect(otherType?.id).not.toBe(first?.id)
    expect(otherType?.project).toEqual(first?.project)
    expect(environmentOf('Blog', 'production')?.project.id).not.toBe(first?.project.id)
  })
})

describe('revoking', () => {
  test('a key is revoked permanently, for other processes too, and no other key is', () => {
    const store = open()
    const elsewhere = open()
    const [one, two] = [store.createKey('Shop', 'production'), store.createKey('Shop', 'production')]
    expect(elsewhere.findEnvironment(one.key)).toBeDefined()
    clock = new Date('2026-05-02T00:00:00.000Z')
    const revoked = { ...store.listKeys()[0], revokedAt: '2026-05-02T00:00:00.000Z' }
    expect(store.revokeKey(one.id)).toEqual({ key: revoked, repeated: false })
    expect(elsewhere.findEnvironment(one.key)).toBeUndefined()
    expect(elsewhere.findEnvironment(two.key)).toBeDefined()
    clock = new Date('2026-05-03T00:00:00.000Z')
    expect(store.revokeKey(one.id)).toEqual({ key: revoked, repeated: true })
    expect(store.listKeys().map(({ id, revokedAt }) => [id, revokedAt])).toEqual([
      [one.id, '2026-05-02T00:00:00.000Z'],
      [two.id, null],
    ])
  })

  test('nothing is revoked for an invalid key', () => {
    const store = open()
    const { key } = store.createKey('Shop', 'production')
    expect(store.revokeKey('nothing')).toBeUndefined()
    expect(store.revokeKey(key)).toBeUndefined()
    expect(store.findEnvironment(key)).toBeDefined()
  })
})

describe('the first key', () => {
  test('the first key is made once', () => {
    const store = open()
    const first = store.createFirstKey('Default', 'production')
    expect(store.findEnvironment(first?.key ?? '')?.project.name).toBe('Default')
    expect(store.createFirstKey('Default', 'production')).toBeUndefined()
    expect(open().createFirstKey('Default', 'production')).toBeUndefined()
  })

  test('the first key is not made where all keys are revoked', () => {
    const store = open()
    store.revokeKey(store.createKey('Shop', 'production').id)
    expect(store.createFirstKey('Default', 'production')).toBeUndefined()
  })

  test('the first key is made by one of several processes that start at once on no file', async () => {
    const script = join(directory, 'first.ts')
    writeFileSync(
      script,
      `import { randomBytes } from 'node:crypto'
       import { openKeyStore } from '${join(import.meta.dirname, '../../../origin/key-store.ts')}'
       const store = openKeyStore(process.argv[2] ?? '', { now: () => new Date(), randomBytes })
       const made = store.createFirstKey('Default', 'production')
       const other = store.createKey('Shop', 'production')
       console.log(JSON.stringify({ made: made !== undefined, found: store.findEnvironment(other.key) !== undefined }))`,
    )
    const runs = await Promise.all(Array.from({ length: 6 }, () => runNode(script, {}, [file])))
    for (const { status, stderr } of runs) expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    const results = runs.map(({ stdout }) => JSON.parse(stdout) as { made: boolean; found: boolean })
    expect(results.filter(({ made }) => made)).toHaveLength(1)
    expect(results.every(({ found }) => found)).toBe(true)
    const keys = open().listKeys()
    expect(keys.map(({ project }) => project).toSorted()).toEqual([
      'Default',
      ...Array<string>(6).fill('Shop'),
    ])
  })
})

describe('the database file of the key store', () => {
  test('the database file of the key store keeps the keys when it is closed and opened', () => {
    const { key } = open().createKey('Shop', 'production')
    opened.pop()?.close()
    expect(open().findEnvironment(key)?.project.name).toBe('Shop')
  })

  test('the database file of the key store is written durably, and has a version', () => {
    open()
    const database = new DatabaseSync(file)
    expect(database.prepare('PRAGMA journal_mode').get()).toEqual({ journal_mode: 'wal' })
    expect(database.prepare('PRAGMA user_version').get()).toEqual({ user_version: 1 })
    database.close()
  })

  test('the database file of the key store is waited for where another process is writing it before it is set up', async () => {
    const path = join(directory, 'origin.db')
    const script = join(directory, 'writer.ts')
    writeFileSync(
      script,
      `import { DatabaseSync } from 'node:sqlite'
       // It waits, too, while the other looks whether the file is free.
       const database = new DatabaseSync(process.argv[2] ?? '', { timeout: 5000 })
       database.exec('BEGIN IMMEDIATE')
       console.log('writing')
       setTimeout(() => database.exec('COMMIT'), 200)`,
    )
    const writer = spawnNode(script, {}, [path])
    await writer.waitForLine(/writing/)
    const store = open(path)
    expect(store.findEnvironment(store.createKey('Shop', 'production').key)).toBeDefined()
    expect(await writer.exit).toBe(0)
  })

  test('a database of a newer version is refused and left as it is', () => {
    open().createKey('Shop', 'production')
    opened.pop()?.close()
    const database = new DatabaseSync(file)
    database.exec('PRAGMA user_version = 7')
    expect(problemOf(() => open())).toBe(
      `ORIGIN_DB: got "${file}", needs a database of schema version 1 or older: ` +
        'this one has version 7, a newer release of the program made it',
    )
    expect(database.prepare('SELECT count(*) AS count FROM api_key').get()).toEqual({ count: 1 })
    database.close()
  })

  test.each([
    ['a directory', '', 'unable to open database file'],
    ['below a file', 'text/origin.db', /^ENOTDIR/],
    ['no database', 'text', 'file is not a database'],
    ['below what can hold nothing', '/proc/none/origin.db', /^ENOENT/],
  ])('a database that is %s is reported in one line', (_, name, reason) => {
    writeFileSync(join(directory, 'text'), 'This is a text. '.repeat(100))
    const path = resolve(directory, name)
    const [, told] =
      /^ORIGIN_DB: got "[^"]+", needs an SQLite file that can be written: (.+)$/.exec(
        problemOf(() => open(path)),
      ) ?? []
    expect(told).toMatch(reason)
  })
})
