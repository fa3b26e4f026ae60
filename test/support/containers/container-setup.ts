import { requireCompose } from './compose.ts'
import { requireEngine } from './engine.ts'

/** Ends the container tests before the first of them where they cannot run. None is skipped. */
export async function setup(): Promise<void> {
  await requireEngine()
  await requireCompose()
}
