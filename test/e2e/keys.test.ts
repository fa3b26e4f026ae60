import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { beforeEach, describe, expect, test } from 'vitest'
import { runNode, type Finished } from '../support/gateway/process.ts'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'

const id = expect.stringMatching(/^[0-9a-f]{24}$/) as string
const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/) as string

let database: string

beforeEach(() => {
  database = join(makeTemporaryDirectory(), 'data', 'origin.db')
})

function keys(...args: string[]): Promise<Finished> {
  return runNode('origin/keys.ts', { ORIGIN_DB: database }, args)
}

async function jsonOf(...args: string[]): Promise<Record<string, unknown>[]> {
  const { status, stdout, stderr } = await keys(...args)
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  const lines = stdout.split('\n')
  expect(lines.pop()).toBe('')
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>)
}

describe('with --json', () => {
  test('create, list and revoke print an object a line, and the key once', async () => {
    const [one] = await jsonOf('create', '--project', 'Shop', '--json')
    expect(one).toStrictEqual({
      id,
      key: expect.stringMatching(/^sluice_[A-Za-z0-9_-]{43}$/) as string,
      project: 'Shop',
      type: 'production',
      createdAt: time,
      revokedAt: null,
    })
    const [two] = await jsonOf('--json', 'create', '--type=development', '--project=Größe & 店')
    expect(two).toMatchObject({ project: 'Größe & 店', type: 'development' })
    expect(two?.['key']).not.toBe(one?.['key'])

    const listed = await jsonOf('list', '--json')
    expect(listed.map((each) => 'key' in each)).toEqual([false, false])
    expect(listed.map((each, i) => ({ key: [one, two][i]?.['key'], ...each }))).toEqual([one, two])

    const revoked = await jsonOf('revoke', String(one?.['id']), '--json')
    expect(revoked).toStrictEqual([{ ...listed[0], revokedAt: time }])
    expect(await jsonOf('revoke', String(one?.['id']), '--json')).toEqual(revoked)
    expect(await jsonOf('list', '--json')).toEqual([...revoked, listed[1]])
  })

  test('an empty list prints no line', async () => {
    expect(await jsonOf('list', '--json')).toEqual([])
  })
})

describe('for people', () => {
  test('create prints the key, its ID and their use', async () => {
    const { status, stdout } = await keys('create', '--project', '  Shop ')
    expect(status).toBe(0)
    expect(stdout).toMatch(
      /^Key: {5}sluice_[\w-]{43}\nID: {6}[0-9a-f]{24}\nProject: Shop \(production\)\n\nThe key is not shown again\./,
    )
  })

  test('list is a table whose columns stand under each other', async () => {
    expect((await keys('list')).stdout).toBe('There are no keys yet.\n')
    const [short] = await jsonOf('create', '--project', 'A', '--json')
    await jsonOf('create', '--project', 'A longer name', '--type', 'development', '--json')
    await keys('revoke', String(short?.['id']))
    const lines = (await keys('list')).stdout.trimEnd().split('\n')
    expect(lines).toHaveLength(3)
    for (const column of ['PROJECT', 'TYPE', 'CREATED', 'REVOKED']) {
      const at = lines[0]?.indexOf(column) ?? 0
      for (const line of lines) expect(line.slice(at - 2, at + 1), column).toMatch(/^ {2}\S$/)
    }
    expect(lines[1]).toMatch(/^[0-9a-f]{24} {2}A {14}production {3}\S+Z {2}\S+Z$/)
    expect(lines[2]).toMatch(/^[0-9a-f]{24} {2}A longer name {2}development {2}\S+Z {2}no$/)
  })

  test('revoke prints the result, and when the key had been revoked before', async () => {
    const [made] = await jsonOf('create', '--project', 'Shop', '--json')
    const shown = String(made?.['id'])
    expect(await keys('revoke', shown)).toEqual({
      status: 0,
      stdout: `Key ${shown} is revoked.\n`,
      stderr: '',
    })
    const again = await keys('revoke', shown)
    expect(again.status).toBe(0)
    expect(again.stdout).toMatch(/^Key [0-9a-f]{24} had been revoked already, at \S+Z\.\n$/)
  })
})

describe('a mistake is one line and status 1', () => {
  const name =
    /^error: option '--project <name>' argument '[^]*' is invalid\. A name has 1 to 100 printable characters\.$/

  test.each<[string, string[], RegExp | string]>([
    ['no project', ['create'], "error: required option '--project <name>' not specified"],
    ['a project that has no name', ['create', '--project', ' '], name],
    [
      'another type',
      ['create', '--project', 'Shop', '--type', 'staging'],
      /^error: .*Allowed choices are development, production\.$/,
    ],
    ['an unknown option', ['create', '--project', 'Shop', '--typ', 'x'], /^error: unknown option '--typ'/],
    ['an unknown command', ['remove', 'x'], /^error: unknown command 'remove'/],
    ['no ID', ['revoke'], "error: missing required argument 'id'"],
    ['an unknown ID', ['revoke', 'x'], 'error: there is no key with the ID "x"'],
  ])('%s', async (_, args, message) => {
    const { status, stdout, stderr } = await keys(...args)
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' })
    expect(stderr).not.toMatch(/^ +at /m)
    const [first = ''] = stderr.split(/\n(?=\(Did you mean|$)/)
    expect(first).toMatch(message)
    if (existsSync(database)) expect(await jsonOf('list', '--json')).toEqual([])
  })

  test('no command at all is answered with the help', async () => {
    const { status, stderr } = await keys()
    expect(status).toBe(1)
    expect(stderr).toMatch(/^Usage: keys /)
  })

  test('a database that cannot be used', async () => {
    writeFileSync((database = join(makeTemporaryDirectory(), 'text')), 'This is a text. '.repeat(100))
    const { status, stderr } = await keys('create', '--project', 'Shop')
    expect({ status, stderr }).toEqual({
      status: 1,
      stderr: `ORIGIN_DB: got "${database}", needs an SQLite file that can be written: file is not a database\n`,
    })
    expect(readFileSync(database, 'utf8')).toMatch(/^This is/)
  })

  test('a database that has been damaged since', async () => {
    await jsonOf('list', '--json')
    const damaged = new DatabaseSync(database)
    damaged.exec('DROP TABLE api_key')
    damaged.close()
    const { status, stderr } = await keys('list')
    expect(status).toBe(1)
    expect(stderr.split('\n')).toEqual([
      expect.stringMatching(/^ORIGIN_DB: got .*no such table: api_key$/),
      '',
    ])
  })
})
