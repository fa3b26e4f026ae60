import { closeSync, existsSync, mkdirSync, openSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { showValue } from '../shared/settings/problems.ts'
import { SettingsError } from '../shared/settings/settings-error.ts'

/**
 * Migrations: statement n migrates a database from version n to n + 1. Released statements are never edited; changes are
 * appended.
 */
const migrations: readonly string[] = [
  `CREATE TABLE project (
     id TEXT PRIMARY KEY,
     name TEXT NOT NULL UNIQUE
   ) STRICT;
   CREATE TABLE environment (
     id TEXT PRIMARY KEY,
     project_id TEXT NOT NULL REFERENCES project (id),
     type TEXT NOT NULL CHECK (type IN ('development', 'production')),
     app_setup_completed INTEGER NOT NULL DEFAULT 0 CHECK (app_setup_completed IN (0, 1)),
     website_setup_completed INTEGER NOT NULL DEFAULT 0 CHECK (website_setup_completed IN (0, 1)),
     created_at TEXT NOT NULL,
     updated_at TEXT NOT NULL,
     UNIQUE (project_id, type)
   ) STRICT;
   CREATE TABLE api_key (
     id TEXT PRIMARY KEY,
     environment_id TEXT NOT NULL REFERENCES environment (id),
     hash BLOB NOT NULL UNIQUE CHECK (length(hash) = 32),
     created_at TEXT NOT NULL,
     revoked_at TEXT
   ) STRICT;`,
]

export type KeyDatabase = DatabaseSync

/** How long a writer waits for another process that is writing. */
const BUSY_TIMEOUT_MS = 5_000
/** SQLITE_BUSY (https://www.sqlite.org/rescode.html). */
const sqliteBusy = 5

/**
 * Opens the database of keys, creates the file and its directory if they are missing, and migrates the schema. Several
 * processes may do so at once.
 *
 * @param path path of the file; `:memory:` and URIs have no special meaning
 * @throws SettingsError if the file cannot be used, or was written by a newer version of the program
 */
export function openKeyDatabase(path: string): KeyDatabase {
  const file = resolve(path)
  let database: KeyDatabase | undefined
  try {
    makeDirectory(dirname(file))
    makePrivateFile(file)
    database = new DatabaseSync(file)
    // With FULL, a key that was shown survives a power cut.
    database.exec(
      `PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON`,
    )
    useWriteAheadLog(database)
    migrate(database, path)
    return database
  } catch (error) {
    database?.close()
    throw databaseProblem(path, error)
  }
}

/** Wraps a database error in one that names the file. */
export function databaseProblem(path: string, error: unknown): SettingsError {
  if (error instanceof SettingsError) return error
  const reason = error instanceof Error ? error.message : String(error)
  return new SettingsError([
    `ORIGIN_DB: got ${showValue(path)}, needs an SQLite file that can be written: ${reason}`,
  ])
}

/** Runs the work in one transaction, without writes by other processes in between. */
export function inTransaction<Result>(database: KeyDatabase, work: () => Result): Result {
  database.exec('BEGIN IMMEDIATE')
  try {
    const result = work()
    database.exec('COMMIT')
    return result
  } catch (error) {
    // After some errors, such as a full disk, SQLite has rolled back already.
    if (database.isTransaction) database.exec('ROLLBACK')
    throw error
  }
}

/**
 * Enables WAL, so that the origin can read while a key is written. This needs an exclusive lock for a moment, for which
 * SQLite does not wait: of two processes that try at once, one gets SQLITE_BUSY.
 */
function useWriteAheadLog(database: KeyDatabase): void {
  const pause = new Int32Array(new SharedArrayBuffer(4))
  const pauseMs = 10
  for (let triesLeft = BUSY_TIMEOUT_MS / pauseMs; ; triesLeft--) {
    try {
      database.exec('PRAGMA journal_mode = WAL')
      return
    } catch (error) {
      if (!isBusy(error) || triesLeft === 0) throw error
    }
    Atomics.wait(pause, 0, 0, pauseMs)
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && 'errcode' in error && error.errcode === sqliteBusy
}

function migrate(database: KeyDatabase, path: string): void {
  if (schemaVersion(database) === migrations.length) return
  inTransaction(database, () => {
    const version = schemaVersion(database)
    if (version > migrations.length) {
      throw new SettingsError([
        `ORIGIN_DB: got ${showValue(path)}, needs a database of schema version ${migrations.length} or older: ` +
          `this one has version ${version}, a newer release of the program made it`,
      ])
    }
    for (const migration of migrations.slice(version)) database.exec(migration)
    database.exec(`PRAGMA user_version = ${migrations.length}`)
  })
}

function schemaVersion(database: KeyDatabase): number {
  return Number(database.prepare('PRAGMA user_version').get()?.['user_version'])
}

/**
 * Creates a directory and its parents. `mkdirSync` with `recursive` never returns where directories cannot be created, such as in `/proc`.
 */
function makeDirectory(path: string): void {
  if (existsSync(path)) return
  makeDirectory(dirname(path))
  try {
    mkdirSync(path)
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error
  }
}

/** Creates the file with mode 600. SQLite creates its other files with the same mode. */
function makePrivateFile(path: string): void {
  try {
    closeSync(openSync(path, 'wx', 0o600))
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error
  }
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code
}
