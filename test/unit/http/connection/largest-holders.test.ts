import { expect, test } from 'vitest'
import { chooseLargest } from '../../../../proxy/http/connection/largest-holders.ts'

type Holding = { client: string; connection: object; bytes: number }

/** Connections with these numbers of holdings, named by client and position. */
function holdings(spec: Record<string, readonly number[][]>): Holding[] {
  return Object.entries(spec).flatMap(([client, connections]) =>
    connections.flatMap((sizes, place) => {
      const connection = { name: `${client}${place}` }
      return sizes.map((bytes) => ({ client, connection, bytes }))
    }),
  )
}

function chosen(spec: Record<string, readonly number[][]>, bytesToFree: number): string[] {
  return chooseLargest(holdings(spec), bytesToFree).map(
    ({ connection }) => (connection as { name: string }).name,
  )
}

test.each([
  ['nothing has to be freed', { a: [[10]] }, 0, []],
  ['the largest of whoever holds most', { a: [[1], [5], [2]], b: [[6]] }, 1, ['a1']],
  ['what one connection holds counts together', { a: [[3, 3, 3], [8]], b: [[1]] }, 1, ['a0']],
  ['whoever holds most by then', { a: [[5], [5]], b: [[6], [1]] }, 12, ['a1', 'b0', 'a0']],
  ['all of it', { a: [[1]], b: [[1]] }, 100, ['b0', 'a0']],
])('%s', (_, spec, bytesToFree, expected) => {
  expect(chosen(spec, bytesToFree)).toEqual(expected)
})
