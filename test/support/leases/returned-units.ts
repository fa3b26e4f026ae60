import { expect } from 'vitest'
import { eventually } from '../wait/eventually.ts'

/**
 * Waits until all leased units that were not used are back. Units that a gateway gives back more than a second after it took them stay
 * counted. This may happen on a busy machine; the counted units must then be at least the used ones.
 *
 * @param read returns the counted units and the used units
 */
export async function expectReturned(
  what: string,
  isBusy: () => boolean,
  read: () => Promise<readonly [counted: number | undefined, used: number]>,
): Promise<void> {
  try {
    await eventually(what, async () => {
      const [counted, used] = await read()
      expect(counted).toBe(used)
    })
  } catch (error) {
    if (!isBusy()) throw error
    const [counted, used] = await read()
    expect(counted).toBeGreaterThanOrEqual(used)
  }
}
