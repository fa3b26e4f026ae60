import { bodyValues, KeyBody } from '../../../proxy/limits/keys/body/key-body.ts'
import { BodyNames, type BodyPart } from '../../../proxy/limits/keys/body/names/body-names.ts'
import { fail } from '../pieces.ts'

const part: BodyPart = { kind: 'body', name: 'email', path: ['email'] }
const names = new BodyNames([part])

/** Bodies with an account, as JSON, as a form, and as a multipart form. The value that Node reads must be among the counted values. */
export function fuzz(bytes: Buffer): void {
  const text = bytes.toString()
  const json = read('application/json', bytes)
  for (const email of emailsInJson(text)) check('JSON.parse', json, email)
  const form = read('application/x-www-form-urlencoded', bytes)
  for (const email of new URLSearchParams(text.replace(/^\?/, '')).getAll('email'))
    check('URLSearchParams', form, email)
  read('multipart/form-data; boundary=b', bytes)
}

function read(type: string, bytes: Buffer): KeyBody {
  const rawHeaders = ['content-type', type]
  const body = new KeyBody({ bytes, isWhole: true }, { rawHeaders }, '/login', names)
  body.find(part)
  return body
}

function emailsInJson(text: string): string[] {
  try {
    const parsed = JSON.parse(text) as { readonly email?: unknown } | null
    const email = parsed?.email
    return typeof email === 'string' || typeof email === 'number' ? [String(email)] : []
  } catch {
    return []
  }
}

function check(reader: string, body: KeyBody, email: string): void {
  const meant = bodyValues(Buffer.from(email.slice(0, 500)).toString('latin1'), false)
  // No account name contains U+FFFD, which replaces bytes that are not UTF-8.
  if (email.length > 500 || email.includes('\ufffd') || body.find(part).isCut) return
  const counted = body.readPart(part)
  if (!meant.every((value) => counted.includes(value)))
    fail(`${reader} reads another account`, { email, meant, counted })
}
