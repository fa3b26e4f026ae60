import { expect } from 'vitest'
import { eventually } from '../wait/eventually.ts'

/**
 * Waits until all units that were leased and not used are back. Those that a gateway gives back later than a second after it has taken
 * them stay counted: where the machine is busy there may be such, and then no fewer than were used may be counted.
 *
 * @param read the units that are counted, and those that were used
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
