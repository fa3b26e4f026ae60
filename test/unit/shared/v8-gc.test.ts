import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { getHeapSpaceStatistics } from 'node:v8'
import { expect, test } from 'vitest'
import { collectGarbage, collectYoungGarbage, gatewayOptions } from '../../../shared/v8-gc.ts'

test('garbage is removed from the heap', () => {
  let garbage: object[] = Array.from({ length: 200_000 }, (_, i) => ({ i }))
  collectGarbage()
  const held = process.memoryUsage().heapUsed
  garbage = garbage.slice(0, 1)
  collectGarbage()
  expect(held - process.memoryUsage().heapUsed).toBeGreaterThan(2_000_000)
  expect(garbage).toHaveLength(1)
})

test('only young garbage is collected', () => {
  const used = (): number =>
    getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space')?.space_used_size ?? 0
  collectYoungGarbage()
  const kept = Array.from({ length: 2_000 }, (_, i) => ({ i }))
  const full = used()
  collectYoungGarbage()
  collectYoungGarbage()
  // Objects still in use are no longer young.
  expect(full - used()).toBeGreaterThan(50_000)
  expect(kept).toHaveLength(2_000)
})

test('npm scripts and the image start Node with the options of the gateway', () => {
  const read = (name: string): string => readFileSync(join(import.meta.dirname, '../../..', name), 'utf8')
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> }
  const command = `node ${gatewayOptions.join(' ')} scripts/run.js proxy/main.ts`
  expect(scripts['gateway']).toBe(`exec ${command}`)

  const inImage = JSON.stringify(['node', ...gatewayOptions, 'dist/proxy/main.js']).replaceAll(',', ', ')
  expect(read('Dockerfile')).toContain(`CMD ${inImage}`)
})
