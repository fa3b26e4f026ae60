import { join } from 'node:path'
import { openStage, playBatch, type Stage } from './batch.ts'
import { drawBatch } from './draw.ts'
import { profiles, type ProfileName } from './gateways.ts'

export type DriveOptions = {
  readonly seed: number
  /** The first batch; `exchanges` counts from there on. */
  readonly firstBatch: number
  readonly exchanges: number
  readonly profiles?: readonly ProfileName[]
  /** Draws the scenarios to play; `drawBatch` unless given. */
  readonly draw?: typeof drawBatch
  /** The root of the gateway's source; this repository unless given. */
  readonly root?: string
}

export type Driven = {
  readonly exchanges: number
  readonly batches: number
  /** The faults, each with the command that replays its batch. */
  readonly faults: readonly string[]
}

const maxExchangesPerBatch = 300
/** In one of this many batches, backends hang. Such a batch is short, as each hanging response takes the gateway's whole timeout. */
const hangsEvery = 12
const exchangesPerHangingBatch = 60
/** Number of concurrent batches, each with its own gateway, so that one batch goes on while the other waits. */
const batchesAtOnce = 2
const maxFaultsReported = 12

const repositoryRoot = join(import.meta.dirname, '../../..')

/** Drives gateways with random batches until `exchanges` exchanges have been played, or until a batch has a fault. */
export async function drive(options: DriveOptions): Promise<Driven> {
  const { seed, firstBatch, draw = drawBatch, root = repositoryRoot } = options
  // Even if there are few exchanges, each of the patient gateways gets a share of them.
  const exchangesPerBatch = Math.min(maxExchangesPerBatch, Math.ceil(options.exchanges / patient.length))
  const stages = new Map<ProfileName, Promise<Stage>>()
  const faults: string[] = []
  let exchanges = 0
  let next = firstBatch

  const playOn = async (): Promise<void> => {
    while (exchanges < options.exchanges && faults.length === 0) {
      const batch = next++
      const name = nameOf(batch, options.profiles)
      const { bounds } = profiles[name]
      const conversations = draw(seed, batch, {
        bounds,
        exchanges: bounds.isImpatient ? exchangesPerHangingBatch : exchangesPerBatch,
      })
      exchanges += conversations.reduce((sum, conversation) => sum + conversation.exchanges.length, 0)
      let found: string[] = []
      // A gateway plays one batch at a time.
      const stage = (stages.get(name) ?? openStage(name, root)).then(async (opened) => {
        found = await playBatch(opened, batch, conversations)
        return opened
      })
      stages.set(name, stage)
      await stage
      faults.push(...found.map((fault) => `TEST_SEED=${seed} RANDOM_BATCH=${batch} (${name}): ${fault}`))
    }
  }
  try {
    await Promise.all(Array.from({ length: options.profiles?.length === 1 ? 1 : batchesAtOnce }, playOn))
  } finally {
    for (const stage of stages.values()) await (await stage).close()
  }
  return { exchanges, batches: next - firstBatch, faults: faults.slice(0, maxFaultsReported) }
}

const patient: readonly ProfileName[] = ['http, roomy', 'https, roomy', 'http, tight', 'https, tight']
const impatient: readonly ProfileName[] = ['http, impatient', 'https, impatient']

function nameOf(batch: number, names?: readonly ProfileName[]): ProfileName {
  const isImpatient = !names && batch % hangsEvery === hangsEvery - 1
  const choices = names ?? (isImpatient ? impatient : patient)
  const index = isImpatient ? Math.floor(batch / hangsEvery) : batch
  return choices[index % choices.length] ?? 'http, roomy'
}
