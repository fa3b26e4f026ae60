import { createHash, randomBytes } from 'node:crypto'
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { authorityFile } from '../support/network/certificates.ts'
import { atEndOfFile } from '../support/run/at-end.ts'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'
import { curl, type CurlReply } from './curl.ts'
import { countRefusals, letIn } from './refusals.ts'
import { run } from './run.ts'
import { startServer } from './server.ts'
import { setStage, type Way } from './stage.ts'

// Redmine on Puma: its API as a client uses it, and its sign-in as a browser uses it.

const { direct, ways } = setStage({ start, http2: true, config: 'test/apps/limits/redmine.yaml' })
const all = [direct, ...ways]

const work = makeTemporaryDirectory()
const attachment = randomBytes(1_500_000)
const attachmentFile = join(work, 'attachment')
writeFileSync(attachmentFile, attachment)

test.for(all)('projects, issues, attachments and wiki pages by the API, $name', async (way) => {
  await useApi(way, `p-${all.indexOf(way)}`, curl)
})

test.for(ways)('a program that repeats refused requests does nothing twice, $name', async (way) => {
  const identifier = `tight-${all.indexOf(way)}`
  const before = await countRefusals(way, 'tight')
  await useApi(way, identifier, async (to, path, args) => {
    const send = (): Promise<CurlReply> => curl(to, path, ['--user-agent', 'tight', ...args])
    const reply = await send()
    if (reply.status !== 429) return reply
    await letIn(to, 'tight')
    return send()
  })
  expect((await countRefusals(way, 'tight')) - before).toBeGreaterThan(1)
  const { body } = await ask(way, 'GET', `/issues.json?status_id=*&project_id=${identifier}`)
  expect(body).toMatchObject({ total_count: 0 })
  expect((await ask(way, 'GET', `/projects/${identifier}/wiki/index.json`)).body).toMatchObject({
    wiki_pages: [{ title: 'Über_uns', version: 1 }],
  })
})

/** Uses the API as a client does, and checks that nothing is missing. */
async function useApi(way: Way, identifier: string, request: Request): Promise<void> {
  const project = { name: `${way.name} ü`, identifier, enabled_module_names: ['issue_tracking', 'wiki'] }
  const ask = (...asked: AskArguments): ReturnType<typeof askRedmine> => askRedmine(request, ...asked)
  const created = await ask(way, 'POST', '/projects.json', { project })
  expect(created).toMatchObject({ status: 201, body: { project: { name: project.name } } })
  const uploaded = await request(way, '/uploads.json?filename=a%20b%2Bc.bin', [
    ...[...asAdmin, '--header', 'Content-Type: application/octet-stream'],
    ...['--data-binary', `@${attachmentFile}`],
  ])
  expect(uploaded.status).toBe(201)
  const { token } = (JSON.parse(uploaded.body) as { upload: { token: string } }).upload
  const issue = {
    project_id: identifier,
    subject: 'ünï 😀 <b>',
    uploads: [{ token, filename: 'a b+c.bin', content_type: 'application/octet-stream' }],
  }
  const { body } = await ask(way, 'POST', '/issues.json', { issue })
  const { id } = (body as { issue: { id: number } }).issue
  expect(await ask(way, 'PUT', `/issues/${id}.json`, { issue: { notes: 'done', done_ratio: 50 } })).toEqual({
    status: 204,
    body: undefined,
  })
  const shown = await ask(way, 'GET', `/issues/${id}.json?include=attachments,journals`)
  expect(shown.body).toMatchObject({
    issue: {
      subject: issue.subject,
      done_ratio: 50,
      attachments: [{ filename: 'a b+c.bin', filesize: attachment.length }],
      journals: [{ notes: 'done' }],
    },
  })
  const [{ id: attachmentId = 0 } = {}] = (shown.body as { issue: { attachments: { id?: number }[] } }).issue
    .attachments
  const download = await request(way, `/attachments/download/${attachmentId}/a%20b%2Bc.bin`, asAdmin)
  expect(download.body).toBe(
    `${attachment.length} bytes, ${createHash('sha256').update(attachment).digest('hex')}`,
  )
  const page = `/projects/${identifier}/wiki/%C3%9Cber_uns.json`
  expect(await ask(way, 'PUT', page, { wiki_page: { text: 'h1. Über uns' } })).toMatchObject({ status: 201 })
  expect((await ask(way, 'GET', page)).body).toMatchObject({ wiki_page: { title: 'Über_uns' } })
  expect((await ask(way, 'DELETE', `/issues/${id}.json`)).status).toBe(204)
  expect((await ask(way, 'GET', `/issues/${id}.json`)).status).toBe(404)
}

test.for(ways)('a client that guesses passwords is refused, another is not, $name', async (way) => {
  // Two ways lead to one gateway, so each way uses its own address.
  const from = ['--interface', `127.0.0.${2 + ways.indexOf(way)}`]
  const statuses: number[] = []
  for (let i = 0; i < 6; i++) statuses.push((await signIn(way, 'wrong', from)).status)
  expect(statuses).toEqual([200, 200, 200, 200, 429, 429])
  const { status, headers } = await signIn(way, 'Secret-123')
  expect([status, headers['location']]).toEqual([302, ['ORIGIN/my/page']])
})

const asAdmin = ['--user', 'admin:Secret-123']

type Request = (way: Way, path: string, args: readonly string[]) => Promise<CurlReply>

type AskArguments = readonly [way: Way, method: string, path: string, sent?: object]

const ask = (...asked: AskArguments): ReturnType<typeof askRedmine> => askRedmine(curl, ...asked)

async function askRedmine(
  request: Request,
  ...[way, method, path, sent]: AskArguments
): Promise<{ status: number; body: unknown }> {
  const data =
    sent === undefined ? [] : ['--header', 'Content-Type: application/json', '--data', JSON.stringify(sent)]
  const { status, body } = await request(way, path, ['--request', method, ...asAdmin, ...data])
  // curl's output is read as bytes.
  const text = Buffer.from(body, 'latin1').toString()
  return { status, body: text.trim() === '' ? undefined : (JSON.parse(text) as unknown) }
}

/** Signs in as a browser does: with the token of the form and its cookie. */
async function signIn(way: Way, password: string, from: readonly string[] = []): Promise<CurlReply> {
  const jar = join(mkdtempSync(join(work, 'jar-')), 'cookies')
  const version = way.protocol === 'http2' ? '--http2' : '--http1.1'
  const args = [version, '--silent', '--cacert', authorityFile, '--cookie-jar', jar, ...from]
  const form = await run(['curl', ...args, `${way.origin}/login`])
  const token = /name="authenticity_token" value="([^"]*)"/.exec(form)?.[1] ?? ''
  expect(token).not.toBe('')
  const fields = { authenticity_token: token, username: 'admin', password }
  const data = Object.entries(fields).flatMap(([name, value]) => ['--data-urlencode', `${name}=${value}`])
  return curl(way, '/login', [...from, '--cookie', jar, ...data])
}

async function start(): Promise<{ port: number; probe: string }> {
  // On a disk, the database would wait for each of about a hundred migrations.
  const root = mkdtempSync('/dev/shm/redmine-')
  atEndOfFile(() => rmSync(root, { recursive: true, force: true }))
  const site = join(root, 'site')
  cpSync('/usr/share/redmine', site, {
    recursive: true,
    dereference: true,
    filter: (path) => !path.includes('/instances/'),
  })
  const instance = join(site, 'instances/test')
  for (const folder of ['config', 'log', 'files', 'tmp', 'public/plugin_assets'])
    mkdirSync(join(instance, folder), { recursive: true })
  const database = { adapter: 'sqlite3', database: join(root, 'redmine.sqlite3'), timeout: 20_000 }
  // JSON is also YAML.
  writeFileSync(join(instance, 'config/database.yml'), JSON.stringify({ production: database }))
  writeFileSync(join(instance, 'config/secret_key.txt'), randomBytes(32).toString('hex'))
  const env = { RAILS_ENV: 'production', REDMINE_LANG: 'en', REDMINE_INSTANCE: 'test', HOME: root }
  const options = { env, cwd: site, timeoutMs: 140_000 }
  await run(['/usr/bin/ruby', 'bin/rake', 'db:migrate'], options)
  const settings = join(import.meta.dirname, 'servers/redmine.rb')
  await run(['/usr/bin/ruby', 'bin/rails', 'runner', settings], options)
  const args = (port: number): string[] => [
    ...['-e', 'production', '-b', `tcp://127.0.0.1:${port}`, '-t', '5:5', 'config.ru'],
  ]
  const port = await startServer('/usr/bin/puma', args, { env, cwd: site, ready: /Listening on/ })
  return { port, probe: '/robots.txt' }
}
