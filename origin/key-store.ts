import { createHash } from 'node:crypto'
import { inTransaction, openKeyDatabase, type KeyDatabase } from './key-database.ts'

export const environmentTypes = ['development', 'production'] as const

export type EnvironmentType = (typeof environmentTypes)[number]

/** The environment of a project, which a key belongs to. Times are ISO 8601 in UTC, with milliseconds. */
export type Environment = {
  readonly id: string
  readonly createdAt: string
  readonly updatedAt: string
  readonly type: EnvironmentType
  readonly project: { readonly id: string; readonly name: string }
  readonly appSetupCompleted: boolean
  readonly websiteSetupCompleted: boolean
}

/** A key without its secret. `id` identifies it in commands and is not secret. */
export type KeyRecord = {
  readonly id: string
  readonly project: string
  readonly type: EnvironmentType
  readonly createdAt: string
  readonly revokedAt: string | null
}

/** A new key, with its secret, which is not stored. */
export type NewKey = KeyRecord & { readonly key: string }

/** The keys and their environments. Each method is one transaction, durable when it returns. */
export type KeyStore = {
  /** Returns the environment of a valid key, with one indexed read. Revocations by other processes take effect at once. */
  findEnvironment(key: string): Environment | undefined
  /** Creates a key, and the project and its environment of that type if they are missing. */
  createKey(projectName: string, type: EnvironmentType): NewKey
  /** Creates a key only if there has never been one. If several processes try at once, one of them creates it. */
  createFirstKey(projectName: string, type: EnvironmentType): NewKey | undefined
  /** Lists every key, including revoked ones, oldest first. */
  listKeys(): KeyRecord[]
  /** Revokes a key permanently. A key that is already revoked keeps its time. */
  revokeKey(id: string): Revocation | undefined
  close(): void
}

/** `repeated`: the key had been revoked before. */
export type Revocation = { readonly key: KeyRecord; readonly repeated: boolean }

export type KeyStoreDeps = {
  readonly now: () => Date
  readonly randomBytes: (count: number) => Buffer
}

type EnvironmentRow = {
  readonly id: string
  readonly created_at: string
  readonly updated_at: string
  readonly type: EnvironmentType
  readonly project_id: string
  readonly project_name: string
  readonly app_setup_completed: 0 | 1
  readonly website_setup_completed: 0 | 1
}

const selectKeys = `
  SELECT k.id, p.name AS project, e.type, k.created_at AS createdAt, k.revoked_at AS revokedAt
  FROM api_key k
  JOIN environment e ON e.id = k.environment_id
  JOIN project p ON p.id = e.project_id`

/**
 * Opens the store of keys in an SQLite file. Keys are stored as SHA-256 only: a key is 256 random bits, so its hash cannot be
 * reversed or guessed, and the timing of a lookup by hash reveals nothing about a key.
 *
 * @throws SettingsError if the file cannot be used
 */
export function openKeyStore(path: string, { now, randomBytes }: KeyStoreDeps): KeyStore {
  const database = openKeyDatabase(path)
  const findByHash = database.prepare(`
    SELECT e.id, e.created_at, e.updated_at, e.type, e.app_setup_completed, e.website_setup_completed,
           p.id AS project_id, p.name AS project_name
    FROM api_key k
    JOIN environment e ON e.id = k.environment_id
    JOIN project p ON p.id = e.project_id
    WHERE k.hash = ? AND k.revoked_at IS NULL`)
  const newId = (): string => randomBytes(12).toString('hex')

  const insertKey = (projectName: string, type: EnvironmentType): NewKey => {
    const createdAt = now().toISOString()
    const environmentId = ensureEnvironment(database, { projectName, type, createdAt, newId })
    const id = newId()
    const key = `sluice_${randomBytes(32).toString('base64url')}`
    database
      .prepare('INSERT INTO api_key (id, environment_id, hash, created_at) VALUES (?, ?, ?, ?)')
      .run(id, environmentId, hashOf(key), createdAt)
    return { id, key, project: projectName, type, createdAt, revokedAt: null }
  }

  return {
    findEnvironment: (key) => {
      const row = findByHash.get(hashOf(key)) as EnvironmentRow | undefined
      return row && environmentOf(row)
    },

    createKey: (projectName, type) => inTransaction(database, () => insertKey(projectName, type)),

    createFirstKey: (projectName, type) =>
      inTransaction(database, () => {
        const isEmpty = database.prepare('SELECT 1 FROM api_key LIMIT 1').get() === undefined
        return isEmpty ? insertKey(projectName, type) : undefined
      }),

    listKeys: () => database.prepare(`${selectKeys} ORDER BY k.rowid`).all() as KeyRecord[],

    revokeKey: (id) =>
      inTransaction(database, () => {
        const { changes } = database
          .prepare('UPDATE api_key SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL')
          .run(now().toISOString(), id)
        const key = database.prepare(`${selectKeys} WHERE k.id = ?`).get(id) as KeyRecord | undefined
        return key && { key, repeated: changes === 0 }
      }),

    close: () => database.close(),
  }
}

type EnvironmentWanted = {
  readonly projectName: string
  readonly type: EnvironmentType
  readonly createdAt: string
  readonly newId: () => string
}

function ensureEnvironment(database: KeyDatabase, wanted: EnvironmentWanted): string {
  const { projectName, type, createdAt, newId } = wanted
  database
    .prepare('INSERT INTO project (id, name) VALUES (?, ?) ON CONFLICT (name) DO NOTHING')
    .run(newId(), projectName)
  database
    .prepare(
      `INSERT INTO environment (id, project_id, type, created_at, updated_at)
       SELECT ?, id, ?, ?, ? FROM project WHERE name = ?
       ON CONFLICT (project_id, type) DO NOTHING`,
    )
    .run(newId(), type, createdAt, createdAt, projectName)
  const row = database
    .prepare(
      'SELECT e.id FROM environment e JOIN project p ON p.id = e.project_id WHERE p.name = ? AND e.type = ?',
    )
    .get(projectName, type)
  return String(row?.['id'])
}

function environmentOf(row: EnvironmentRow): Environment {
  return {
    id: row.id,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    type: row.type,
    project: { id: row.project_id, name: row.project_name },
    appSetupCompleted: row.app_setup_completed === 1,
    websiteSetupCompleted: row.website_setup_completed === 1,
  }
}

function hashOf(key: string): Buffer {
  return createHash('sha256').update(key).digest()
}
