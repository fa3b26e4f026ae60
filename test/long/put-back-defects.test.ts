import { expect, test } from 'vitest'
import { drive, type DriveOptions } from '../wire/random/driver.ts'
import { copyPatchedSource, type Patch } from '../wire/random/patched-source.ts'

/*
 * Tests that the random driver finds defects: puts former defects back into a copy of the source, one at a time. The test also fails if the
 * source has changed so much that a patch does not apply any more: then renew the patch.
 */

type Defect = {
  readonly name: string
  readonly patches: readonly Patch[]
  /** The profiles in which the defect shows. */
  readonly profiles: NonNullable<DriveOptions['profiles']>
  readonly shownBy: RegExp
}

const defects: readonly Defect[] = [
  {
    name: 'a connection goes back to the pool paused',
    profiles: ['https, roomy', 'https, tight'],
    shownBy: /504 with|MaxListenersExceededWarning|hangs/,
    patches: [
      {
        file: 'proxy/http/forward/response-delivery.ts',
        from:
          '    if (this.#slowBody) this.#slowBody.push(chunk)\n' +
          '    else if (last) response.end(chunk)\n' +
          '    else if (response.writableNeedDrain) this.#hold(chunk, source)\n' +
          '    else response.write(chunk)\n',
        to:
          '    if (last) return response.end(chunk)\n' +
          '    if (response.write(chunk)) return\n' +
          '    source?.pause()\n' +
          '    response.onDrain = () => source?.resume()\n',
      },
      {
        file: 'proxy/http/upstream/connection.ts',
        from: '    if (this.socket.isPaused()) this.socket.resume()\n',
        to: '',
      },
    ],
  },
  {
    name: 'a large answer that has waited for its client is not told to go on',
    profiles: ['http, roomy', 'https, roomy'],
    shownBy: /hangs|connections are left/,
    patches: [
      {
        file: 'proxy/http/http1/connection.ts',
        from: '    if (response && !response.writableEnded) this.guard(() => response.onDrain?.())\n',
        to: '',
      },
    ],
  },
  {
    name: 'reading stays paused after a body that was there before it was taken',
    profiles: ['http, roomy'],
    shownBy: /hangs|does not close the connection/,
    patches: [
      {
        file: 'proxy/http/http1/input.ts',
        from: '!request || request.complete ? 0 : request.bufferedBytes',
        to: 'request?.bufferedBytes ?? 0',
      },
      {
        file: 'proxy/http/http1/input.ts',
        from: '    else this.#updateReading()\n',
        to: '',
      },
    ],
  },
  {
    name: 'a connection is used again after a response that overtook its request',
    profiles: ['http, roomy', 'http, tight'],
    // The symptom depends on how much of the request was sent. If the backend takes the next request for its body, all wait, some of them
    // until the gateway answers 504.
    shownBy: /the backend saw|50[24] with|hangs/,
    patches: [
      {
        file: 'proxy/http/upstream/connection.ts',
        from: 'persistent && this.#requestSent && this.isWritable && !',
        to: 'persistent && !',
      },
    ],
  },
]

/** A seed with which each defect is found soon. */
const seed = 7

for (const { name, patches, profiles, shownBy } of defects) {
  test(`${name}: the random driver finds it`, async () => {
    const root = copyPatchedSource(patches)
    const { faults } = await drive({ seed, firstBatch: 0, exchanges: 20_000, profiles, root })
    expect(faults.join('\n')).toMatch(shownBy)
  }, 600_000)
}
