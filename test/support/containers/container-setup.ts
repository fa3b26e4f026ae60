import { requireCompose } from './compose.ts'
import { requireEngine } from './engine.ts'

/** Fails the container tests before the first one if they cannot run. No test is skipped. */
export async function setup(): Promise<void> {
  await requireEngine()
  await requireCompose()
}
