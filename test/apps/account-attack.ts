import { Agent, request as httpRequest } from 'node:http'
import { setTimeout } from 'node:timers/promises'

/** A way to write an account and password in a guess: `Content-Type` and body. */
export type Spelling = (account: string, password: string) => readonly [type: string, body: string]

const json = 'application/json'
const form = 'application/x-www-form-urlencoded'

function inJson(email: string, password: string): string {
  return `{"email":${email},"password":"${password}"}`
}

function escaped(text: string): string {
  return Array.from(text, (each) => `\\u${(each.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`).join('')
}

function percent(text: string): string {
  return [...Buffer.from(text)].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('')
}

function multipart(email: string, password: string, parameter = 'name'): readonly [string, string] {
  const part = (name: string, value: string): string =>
    `--b0\r\nContent-Disposition: form-data; ${parameter}="${name}"\r\n\r\n${value}\r\n`
  return [
    'multipart/form-data; boundary=b0',
    `${part('email', email)}${part('password', password)}--b0--\r\n`,
  ]
}

/** Twenty ways to name one account, each of which some backend reads. */
export const spellings: readonly Spelling[] = [
  (account, password) => [json, inJson(`"${account}"`, password)],
  (account, password) => [json, inJson(`"${account.toUpperCase()}"`, password)],
  (account, password) => [json, inJson(`" ${account} "`, password)],
  (account, password) => [json, inJson(`"${escaped(account)}"`, password)],
  (account, password) => [json, `{"email":"nobody","\\u0065mail":"${account}","password":"${password}"}`],
  (account, password) => [json, `{"email":"${account}","x":{"email":"nobody"},"password":"${password}"}`],
  (account, password) => [json, `{"password":"${password}","a":[1,2],"email":"${account}"}\n`],
  (account, password) => [`${json}; charset=utf-8`, `\n\t ${inJson(`"${account}"`, password)}`],
  (account, password) => ['Application/JSON', inJson(`["nobody","${account}"]`, password)],
  (account, password) => [form, `email=${account}&password=${password}`],
  (account, password) => [form, `email=${encodeURIComponent(account)}&password=${password}`],
  (account, password) => [form, `email=${percent(account)}&password=${password}`],
  (account, password) => [form, `email=+${account.toUpperCase()}+&password=${password}`],
  (account, password) => [form, `%65mail=${account}&password=${password}`],
  (account, password) => [form, `email=nobody&email=${account}&password=${password}`],
  (account, password) => [form, `email[]=${account}&password=${password}`],
  (account, password) => [`${form}; charset=UTF-8`, `password=${password}&email=${account}&x=;`],
  (account, password) => multipart(account, password),
  (account, password) => multipart(account.toUpperCase(), password),
  (account, password) => multipart(account, password, 'NAME'),
]

const agent = new Agent({ keepAlive: true, maxSockets: 400 })

export type Answer = { readonly status: number | undefined; readonly cookie: string; readonly ms: number }

/** Signs in; the status is undefined if the connection broke. */
export function signIn(
  port: number,
  { host, from, cookie = '' }: { readonly host: string; readonly from: string; readonly cookie?: string },
  [type, body]: readonly [type: string, body: string],
): Promise<Answer> {
  return new Promise((resolve) => {
    const begun = performance.now()
    const headers = {
      host,
      'x-forwarded-for': from,
      'content-type': type,
      'content-length': Buffer.byteLength(body),
      ...(cookie !== '' && { cookie }),
    }
    const end = (status: number | undefined, set: readonly string[] = []): void => {
      const device = set.find((line) => line.startsWith('sluice_device=')) ?? ''
      resolve({ status, cookie: device.split(';', 1)[0] ?? '', ms: performance.now() - begun })
    }
    const request = httpRequest({ host: '127.0.0.1', port, method: 'POST', path: '/login', headers, agent })
    request.on('error', () => end(undefined))
    request.on('response', (response) => {
      response.resume().on('end', () => end(response.statusCode, response.headers['set-cookie']))
      response.on('error', () => end(undefined))
    })
    request.end(body)
  })
}

/** Runs `count` tasks, `atOnce` at a time. */
export async function inParallel(
  count: number,
  atOnce: number,
  act: (index: number) => Promise<void>,
): Promise<void> {
  let next = 0
  const work = async (): Promise<void> => {
    while (next < count) await act(next++)
  }
  await Promise.all(Array.from({ length: atOnce }, work))
}

/**
 * Repeats an action while it is switched on, `atOnce` at a time, each followed by a pause: like clients on the Internet, which wait longer
 * for their responses than the gateway takes.
 */
export class PacedLoad {
  readonly #loops: Promise<void>
  #isOn = false
  #isOver = false
  #acts = 0

  constructor(atOnce: number, pauseMs: number, act: (index: number) => Promise<void>) {
    const loop = async (number: number): Promise<void> => {
      // Spreads out the first actions.
      await setTimeout((number * pauseMs) / atOnce)
      while (!this.#isOver) {
        if (this.#isOn) await act(this.#acts++)
        await setTimeout(pauseMs)
      }
    }
    this.#loops = Promise.all(Array.from({ length: atOnce }, (_, number) => loop(number))).then(
      () => undefined,
    )
  }

  get acts(): number {
    return this.#acts
  }

  switch(isOn: boolean): void {
    this.#isOn = isOn
  }

  async stop(): Promise<void> {
    this.#isOver = true
    await this.#loops
  }
}

/** The address with this number, each in its own /24. There are more than any test needs. */
export function addressOf(index: number): string {
  return `${100 + Math.floor(index / 65_536)}.${Math.floor(index / 256) % 256}.${index % 256}.9`
}

export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0
}

export function closeClients(): void {
  agent.destroy()
}
