import { expect, test } from 'vitest'
import { measureRows, rowsFolder } from '../support/cost/run-rows.ts'
import { copyPatchedSource, type Patch } from '../wire/random/patched-source.ts'

/*
 * Tests that the measurement of what a byte costs finds defects: puts former defects back into a copy of the source, one at a time. If a
 * patch does not apply any more, renew it.
 */

type Defect = {
  readonly name: string
  readonly patches: readonly Patch[]
  /** The file of the readers, and a part of the names of the readers to measure. */
  readonly rows: readonly [file: string, part: string]
  readonly shownBy: RegExp
}

const countsNothing: readonly Patch[] = [
  {
    file: 'proxy/http/http1/parser/head-size.ts',
    from: 'this.#bytes += bytes + LINE_END_BYTES\n',
    to: 'this.#bytes += Math.max(0, bytes - LINE_END_BYTES)\n',
  },
  {
    file: 'proxy/http/http1/parser/head-size.ts',
    from: 'if (++this.#fields > this.#limits.maxFields)',
    to: 'if (++this.#fields < 0)',
  },
]

const defects: readonly Defect[] = [
  {
    name: 'a line of a name and a colon counts for nothing in a head',
    patches: countsNothing,
    rows: ['parsers.ts', 'lines of the head of a request'],
    shownBy: /bytes are kept of \d+, and \d+ may be/,
  },
  {
    name: 'a line of a name and a colon counts for nothing in trailers',
    patches: countsNothing,
    rows: ['parsers.ts', 'trailers of a request'],
    shownBy: /bytes are kept of \d+, and \d+ may be/,
  },
  {
    name: 'the received part of a response head is joined anew with each byte',
    patches: [
      {
        file: 'proxy/http/message/growing-buffer.ts',
        from: 'Math.max(needed, 2 * this.#room.length, MIN_ROOM_BYTES)',
        to: 'needed',
      },
    ],
    rows: ['responses.ts', 'a line of the head of a response'],
    shownBy: /ms of CPU, and may take 20/,
  },
  {
    name: 'each chunk of a request is passed on by itself',
    patches: [
      {
        file: 'proxy/http/http1/parser/body-reader.ts',
        from: 'if (to - from < MIN_SEPARATE_BYTES) this.#content.add(bytes, from, to)\n',
        to: 'if (from === -1) this.#content.add(bytes, from, to)\n',
      },
    ],
    rows: ['parsers.ts', 'chunks of a request'],
    shownBy: /passed on in \d+ pieces/,
  },
  {
    name: 'each chunk of a response is passed on by itself',
    patches: [
      {
        file: 'proxy/http/upstream/response/chunked-reader.ts',
        from: '< MIN_SEPARATE_BYTES',
        to: '< 0',
      },
    ],
    rows: ['responses.ts', 'chunks of a response'],
    shownBy: /passed on in \d+ pieces/,
  },
  {
    name: 'each of the values of a cookie is read up to the next semicolon',
    patches: [
      {
        file: 'proxy/request/values/cookie-values.ts',
        from: "ending === 'semicolon' || latest.every((one) => met.has(one))",
        to: "ending === 'semicolon'",
      },
      {
        file: 'proxy/request/values/decoded-values.ts',
        from: 'const MAX_SPELLINGS = 8\n',
        to: 'const MAX_SPELLINGS = 1_000_000\n',
      },
    ],
    rows: ['request-values.ts', 'cookies that a rule counts by'],
    shownBy: /ms of CPU, and may take 2$/m,
  },
]

test.each(defects)(
  '$name: the measurement finds it',
  async ({ patches, rows: [file, part], shownBy }) => {
    const root = copyPatchedSource(patches, ['test/support', rowsFolder])
    const found = await measureRows(root, file, ['time', 'memory'], 0, part)
    expect(found.map(({ what }) => what).join('\n')).toMatch(shownBy)
  },
  600_000,
)
