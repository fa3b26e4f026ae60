import { Agent, request as httpsRequest } from 'node:https'
import type { ClientHttp2Session } from 'node:http2'
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { WebSocket } from 'ws'
import { authorityFile } from '../network/certificates.ts'
import { connectHttp2, sendHttp2 } from '../http/http2.ts'

/** Descriptions of the failures, the number of requests that the backend answered, and the number of messages that were echoed. */
export type LoadResult = {
  readonly failures: readonly string[]
  readonly requests: number
  readonly echoes: number
}

/**
 * Continuously sends requests over keep-alive HTTP/1.1 and HTTP/2 connections, and messages over open WebSockets, to a gateway that serves
 * HTTPS and whose backend echoes messages. Any status except 200, any connection that ends, and any message without an echo is a failure.
 *
 * @returns a function that ends the load
 */
export async function startLoad(port: number): Promise<() => Promise<LoadResult>> {
  const failures: string[] = []
  const fail = (what: string, why: unknown): void => {
    if (failures.length < 20) failures.push(`${what}: ${String(why)}`)
  }
  const ca = readFileSync(authorityFile)
  let isOver = false
  let requests = 0
  let echoes = 0

  const agents = [0, 1].map(() => new Agent({ keepAlive: true, maxSockets: 1, ca }))
  const send = (agent: Agent): Promise<void> =>
    new Promise((resolve) => {
      const sent = httpsRequest({ host: 'localhost', port, path: '/load', agent }, (response) => {
        if (response.statusCode === 200) requests += 1
        else fail('HTTP/1.1', response.statusCode)
        response.resume().on('end', resolve)
      })
      sent.on('socket', (socket) => {
        if (!seen.has(socket)) socket.once('close', () => !isOver && fail('HTTP/1.1', 'connection closed'))
        seen.add(socket)
      })
      sent.on('error', (error) => {
        fail('HTTP/1.1', error)
        resolve()
      })
      sent.end()
    })
  const seen = new Set<unknown>()

  const sessions = [connectHttp2(port), connectHttp2(port)]
  for (const session of sessions) session.once('close', () => !isOver && fail('HTTP/2', 'connection closed'))
  const stream = async (session: ClientHttp2Session): Promise<void> => {
    const { status } = await sendHttp2(session, { ':path': '/load' })
    if (status === 200) requests += 1
    else fail('HTTP/2', status)
  }

  const sockets = await Promise.all([0, 1].map(() => openWebSocket(port, ca)))
  for (const socket of sockets)
    socket.once('close', (code) => !isOver && fail('WebSocket', `connection closed, ${code}`))
  const echo = (socket: WebSocket): Promise<void> =>
    new Promise((resolve) => {
      socket.once('message', () => {
        echoes += 1
        resolve()
      })
      socket.once('close', () => resolve())
      socket.send('hello')
    })

  const again = async (step: () => Promise<void>): Promise<void> => {
    while (!isOver) {
      await step().catch((error: unknown) => fail('load', error))
      await sleep(1)
    }
  }
  const running = [
    ...agents.map((agent) => again(() => send(agent))),
    ...sessions.map((session) => again(() => stream(session))),
    ...sockets.map((socket) => again(() => echo(socket))),
  ]
  return async () => {
    isOver = true
    await Promise.all(running)
    for (const agent of agents) agent.destroy()
    for (const session of sessions) session.close()
    const open = sockets.filter(({ readyState }) => readyState !== WebSocket.OPEN).length
    if (open > 0) fail('WebSocket', 'not open at the end')
    for (const socket of sockets) socket.terminate()
    return { failures, requests, echoes }
  }
}

function openWebSocket(port: number, ca: Buffer): Promise<WebSocket> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(`wss://localhost:${port}/socket`, { ca })
    socket.setMaxListeners(0)
    socket.once('open', () => resolve(socket))
    socket.once('error', reject)
  })
}
