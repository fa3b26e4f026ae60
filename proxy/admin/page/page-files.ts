import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { extname } from 'node:path'

/** A file of the operators' page. */
export type PageFile = {
  readonly contentType: string
  readonly body: Buffer
  /** A strong entity tag (RFC 9110, section 8.8.3). */
  readonly etag: string
}

/**
 * The page runs only its own script and sends requests only to its own host. It cannot be shown in a frame, where another page could trick
 * users into clicking its buttons, and its inputs cannot be submitted anywhere as a form.
 */
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

export const pageFields: Readonly<Record<string, string>> = {
  'Content-Security-Policy': contentSecurityPolicy,
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Referrer-Policy': 'no-referrer',
  'X-Frame-Options': 'DENY',
  'Cache-Control': 'no-cache',
}

/**
 * Reads the files of the page, by path. They hold no data, so everybody may read them.
 *
 * @param needsToken written into the page, so that it asks for the token before it sends requests to the gateway
 */
export function readPageFiles(needsToken: boolean): ReadonlyMap<string, PageFile> {
  const mark = (html: string): string =>
    needsToken ? html.replace('<html', '<html data-token="needed"') : html
  return new Map(
    readdirSync(folder).map((name) => [
      name === 'page.html' ? '/' : `/page/${name}`,
      readPageFile(name, name === 'page.html' ? mark : undefined),
    ]),
  )
}

const folder = new URL('browser/', import.meta.url)

const contentTypes: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
}

function readPageFile(name: string, mark = (text: string): string => text): PageFile {
  const body = Buffer.from(mark(readFileSync(new URL(name, folder), 'utf8')))
  return {
    contentType: contentTypes[extname(name)] ?? 'application/octet-stream',
    body,
    etag: `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`,
  }
}

/** Whether `If-None-Match` lists this file's tag. The comparison is weak (RFC 9110, section 13.1.2). */
export function isKnown({ etag }: PageFile, ifNoneMatch: string | undefined): boolean {
  if (ifNoneMatch === undefined) return false
  return ifNoneMatch.split(',').some((tag) => tag.trim() === '*' || tag.trim().replace(/^W\//, '') === etag)
}
