import { startPlannedBackend, type PlannedBackend } from './backend.ts'
import { drawProbes } from './draw.ts'
import { startDrivenGateway, type DrivenGateway, type ProfileName } from './gateways.ts'
import { converseHttp1 } from './http1-client.ts'
import { converseHttp2 } from './http2-client.ts'
import { judgeConversation } from './judge-conversation.ts'
import type { Conversation, Exchange } from './plan.ts'
import { untilAtRest, watchOutput } from './rest.ts'

/** A gateway and the backend behind it. */
export type Stage = {
  readonly gateway: DrivenGateway
  readonly backend: PlannedBackend
  readonly takeLines: (mayFail: boolean) => string[]
  close(): Promise<void>
}

/** A client gives up after this silence, which is longer than the gateway waits for the backend. */
const silenceMs = 45_000

/** @param root the root of the source to run */
export async function openStage(name: ProfileName, root: string): Promise<Stage> {
  const backend = await startPlannedBackend()
  const gateway = await startDrivenGateway(name, backend.url, root)
  const takeLines = watchOutput(gateway)
  const close = async (): Promise<void> => {
    await gateway.process.stop('SIGKILL')
    await backend.close()
  }
  return { gateway, backend, takeLines, close }
}

/**
 * Plays all conversations of a batch concurrently, waits until the gateway is at rest, and then tries each connection in its pool.
 *
 * @returns the faults
 */
export async function playBatch(
  stage: Stage,
  batch: number,
  conversations: readonly Conversation[],
): Promise<string[]> {
  const { gateway, backend, takeLines } = stage
  const faults = await play(stage, conversations)
  const rest = await untilAtRest(gateway, () => backend.openConnections)
  faults.push(...rest.faults)
  if (faults.length === 0 && rest.idle > 0) {
    const probes = drawProbes(batch, rest.idle, gateway.bounds)
    const found = await play(stage, probes)
    faults.push(...found.map((fault) => `afterwards, on the connections in the pool: ${fault}`))
    faults.push(...(await untilAtRest(gateway, () => backend.openConnections)).faults)
  }
  const mayFail = conversations.some(({ exchanges }) => exchanges.some(mayBeLogged))
  return [
    ...faults,
    ...takeLines(mayFail),
    ...backend.takeFaults().map((fault) => `the backend saw: ${fault}`),
  ]
}

/** Whether a request may have a line in the log, because the backend or the client breaks off. */
function mayBeLogged({ answer, cancel }: Exchange): boolean {
  return answer.broken !== undefined || answer.then === 'drop' || cancel !== undefined
}

async function play({ gateway, backend }: Stage, conversations: readonly Conversation[]): Promise<string[]> {
  backend.expect(conversations.flatMap(({ exchanges }) => exchanges))
  const { port, bounds } = gateway
  const outcomes = await Promise.all(
    conversations.map((conversation) =>
      (conversation.protocol === 'h2' ? converseHttp2 : converseHttp1)(port, conversation, silenceMs),
    ),
  )
  return conversations.flatMap((conversation, i) =>
    judgeConversation(conversation, outcomes[i] ?? [], (id) => backend.attemptsOf(id), bounds).map(
      ({ exchange, text }) => `${text}\n  ${tellPlan(conversation, exchange, backend)}`,
    ),
  )
}

/** Describes the exchange, its neighbours on its connection, and the backend's view of it. */
function tellPlan(conversation: Conversation, exchange: Exchange, backend: PlannedBackend): string {
  const { exchanges, ...how } = conversation
  const others = exchanges.map((one) => (one === exchange ? `[${tellShort(one)}]` : tellShort(one)))
  return [
    JSON.stringify(how),
    others.join(' '),
    JSON.stringify(exchange),
    JSON.stringify(backend.attemptsOf(exchange.id)),
  ].join('\n  ')
}

function tellShort({ kind, upload, answer, cancel }: Exchange): string {
  const parts: string[] = [kind]
  if (upload) parts.push(`+${upload.bytes}`)
  if (answer.broken) parts.push(`/${answer.broken.how}`)
  if (cancel) parts.push('!')
  return parts.join('')
}
