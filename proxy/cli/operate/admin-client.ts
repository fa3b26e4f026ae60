import { reasonOf, showValue } from '../../../shared/settings/problems.ts'
import { NOT_SHOWN } from '../../../shared/settings/secret-path.ts'
import { adminToken } from '../../config/setting-kinds.ts'
import { nameAsGiven, readPrefixedVariables } from '../../config/written/prefixed-variables.ts'
import { readSecretFiles } from '../../config/written/secret-files.ts'
import { CommandError, status as exit } from '../output.ts'

/** How to reach a running gateway. */
export type AdminOptions = { readonly admin: string; readonly json?: true }

export type AdminReply = { readonly status: number; readonly body: unknown }

/** Time limit of a request. An admin listener answers at once, unless it waits for Redis. */
const TIMEOUT_MS = 10_000
/** Maximum length of an answer or an event. The longest answer of a gateway, a list of 10,000 bans, is a few MB. */
const MAX_ANSWER_LENGTH = 16 * 1024 * 1024

/**
 * Asks the admin listener of a running gateway, with the token that a gateway would read here: `ADMIN_TOKEN`, or the
 * file that `ADMIN_TOKEN_FILE` names.
 *
 * @param body sent as JSON with POST; undefined for GET
 * @throws CommandError if no gateway answers, or the token is invalid
 */
export function askAdmin(options: AdminOptions, path: string, body?: unknown): Promise<AdminReply> {
  return request(options, path, { body }, readReply)
}

/**
 * Returns the newest event of `GET /api/events`, the data of the operators' page.
 *
 * @param ended aborts the wait for the event
 * @throws CommandError if no gateway answers, or the token is invalid
 */
export function askForEvent(
  options: AdminOptions,
  ended?: AbortSignal,
): Promise<Readonly<Record<string, unknown>>> {
  return request(options, '/api/events', { ended }, readStatusEvent)
}

/** Sends a request with the token, and reads its response. */
async function request<Result>(
  { admin }: AdminOptions,
  path: string,
  { body, ended }: { readonly body?: unknown; readonly ended?: AbortSignal | undefined },
  read: (response: Response) => Promise<Result>,
): Promise<Result> {
  const token = readToken()
  const url = endpoint(admin, path)
  try {
    const response = await fetch(url, {
      method: body === undefined ? 'GET' : 'POST',
      headers: {
        ...(token && { authorization: `Bearer ${token}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      // Do not follow redirects: the token is for this listener only.
      redirect: 'error',
      signal: AbortSignal.any([AbortSignal.timeout(TIMEOUT_MS), ...(ended ? [ended] : [])]),
    })
    return await read(response)
  } catch (error) {
    if (error instanceof CommandError) throw error
    throw new CommandError(
      `no gateway answers at ${url.origin} (${whyOf(error)}); --admin names another`,
      exit.no,
    )
  }
}

async function readReply(response: Response): Promise<AdminReply> {
  return { status: response.status, body: await readJson(response) }
}

/** Returns the first `status` event. They arrive twice a second, after an event with the history. */
async function readStatusEvent(response: Response): Promise<Readonly<Record<string, unknown>>> {
  if (response.status !== 200 || !response.body) throw refusalOf(await readReply(response))
  const begun = new BoundedText()
  for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
    begun.add(chunk)
    if (!chunk.includes('\n')) continue
    const events = begun.take().split('\n\n')
    begun.add(events.pop() ?? '')
    for (const text of events) {
      const [, data] = /^event: status\ndata: (.*)$/m.exec(text) ?? []
      const event = data === undefined ? undefined : parse(data)
      if (isRecord(event)) return event
    }
  }
  throw new Error('the gateway ended the event stream')
}

async function readJson(response: Response): Promise<unknown> {
  const text = new BoundedText()
  for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) text.add(chunk)
  return parse(text.take())
}

/** Members with these names, which no gateway sends, would make an object throw when it is converted to a text or a number. */
const conversions: ReadonlySet<string> = new Set(['toString', 'valueOf', 'toJSON'])

function parse(json: string): unknown {
  return JSON.parse(json, (name, value: unknown) => (conversions.has(name) ? undefined : value))
}

/** A text that arrives in pieces, with at most `MAX_ANSWER_LENGTH` characters. */
class BoundedText {
  #pieces: string[] = []
  #length = 0

  /** @throws an Error if the answer is too long */
  add(piece: string): void {
    this.#length += piece.length
    if (this.#length > MAX_ANSWER_LENGTH) throw new Error('the answer is longer than 16 MiB')
    this.#pieces.push(piece)
  }

  /** Returns the text so far, and removes it. */
  take(): string {
    const text = this.#pieces.join('')
    this.#pieces = []
    this.#length = 0
    return text
  }
}

/**
 * Returns the token; undefined if none is set.
 *
 * @throws CommandError if its file cannot be read, or if no gateway can have this token. The error of `fetch` would show a token that a
 *   header cannot carry.
 */
function readToken(): string | undefined {
  const { env: given, prefixed } = readPrefixedVariables(process.env)
  const { env, problems } = readSecretFiles(given, process.cwd())
  const token = env['ADMIN_TOKEN'] || undefined
  const problem = problems.find(({ text }) => text.startsWith('ADMIN_TOKEN'))?.text
  const mistake =
    problem ??
    (token === undefined || adminToken.schema.safeParse(token).success
      ? undefined
      : `ADMIN_TOKEN: got ${NOT_SHOWN}, needs ${adminToken.needs}`)
  if (mistake !== undefined) throw new CommandError(nameAsGiven(mistake, prefixed), exit.usage)
  return token
}

/** The JSON object that a gateway answers with. */
export type Answer = Readonly<Record<string, unknown>>

/**
 * Does what `askAdmin` does, but throws the gateway's error for every status other than 200.
 *
 * @param field a member that the answer of a gateway has
 * @throws CommandError if the answer lacks this member: a backend that answers everything with 200 has not carried out the request
 */
export async function askSuccessfully(
  options: AdminOptions,
  path: string,
  field: string,
  body?: unknown,
): Promise<Answer> {
  const reply = await askAdmin(options, path, body)
  if (reply.status !== 200) throw refusalOf(reply)
  return expectMember(reply.body, field, options)
}

/** @throws CommandError if the body of an answer does not have this member */
export function expectMember(body: unknown, field: string, { admin }: AdminOptions): Answer {
  if (isRecord(body) && field in body) return body
  throw new CommandError(
    `what answers at ${admin} is not the admin listener of a gateway of this version; --admin names another`,
    exit.no,
  )
}

/** Returns the reason that the gateway gives for refusing a request. */
export function refusalOf(reply: AdminReply): CommandError {
  const message =
    isRecord(reply.body) && typeof reply.body['error'] === 'string' ? reply.body['error'] : 'error'
  const hint = reply.status === 401 ? ': set ADMIN_TOKEN to the token of the gateway' : ''
  // A 400 is a mistake on the command line that only the gateway can detect.
  const code = reply.status === 400 ? exit.usage : exit.no
  return new CommandError(`the gateway answers ${reply.status}, ${message}${hint}`, code)
}

/** Whether a parsed JSON value is an object, and neither an array nor null. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Returns the objects of a list in a reply; empty without such a list. */
export function recordsIn(body: unknown, field: string): readonly Readonly<Record<string, unknown>>[] {
  const list = isRecord(body) ? body[field] : undefined
  return Array.isArray(list) ? list.filter(isRecord) : []
}

/** Returns the URL of a path of the admin listener, below the path of `--admin`, as a proxy before the listener may need. */
function endpoint(admin: string, path: string): URL {
  const base = URL.parse(admin)
  // `fetch` refuses such a URL with an error that shows the password.
  if (base && (base.username !== '' || base.password !== ''))
    throw new CommandError('--admin needs a URL without a user and a password', exit.usage)
  if (!base || !/^https?:$/.test(base.protocol))
    throw new CommandError(`--admin needs an http or https URL, got ${showValue(admin)}`, exit.usage)
  return new URL(base.origin + base.pathname.replace(/\/+$/, '') + path)
}

function whyOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const { cause } = error
  // The message of `fetch` for a blocked port (https://fetch.spec.whatwg.org/#port-blocking).
  if (cause instanceof Error && cause.message === 'bad port')
    return 'a port that browsers block, and this command too: choose another ADMIN_PORT'
  if (cause instanceof Error && 'code' in cause) return String(cause.code)
  return cause instanceof Error ? reasonOf(cause) : reasonOf(error)
}
