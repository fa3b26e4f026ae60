import { describe, expect, test } from 'vitest'
import type { Found } from '../../../proxy/names/find-addresses.ts'
import { NameError } from '../../../proxy/names/name-error.ts'
import { Names } from '../../../proxy/names/names.ts'

type Pending = {
  readonly name: string
  readonly answer: (found: Found) => void
  readonly fail: (code: 'ENOTFOUND' | 'EAI_AGAIN') => void
}

function setUp(): { names: Names; pending: Pending[]; clock: { ms: number } } {
  const pending: Pending[] = []
  const clock = { ms: 1_000_000 }
  const find = (name: string): Promise<Found> =>
    new Promise((resolve, reject) =>
      pending.push({ name, answer: resolve, fail: (code) => reject(new NameError(code, name)) }),
    )
  return { names: new Names({ find, now: () => clock.ms }), pending, clock }
}

const found = (...addresses: string[]): Found => ({ addresses, forMs: 10_000 })

function lookUp(names: Names, name: string, family = 0): Promise<readonly string[]> {
  return new Promise((resolve, reject) => {
    names.lookup(name, { all: true, family }, (error, addresses) => {
      if (error) reject(error)
      else if (typeof addresses === 'string') reject(new Error('all were asked for'))
      else resolve(addresses.map(({ address }) => address))
    })
  })
}

describe('the addresses of names', () => {
  test('a name has one lookup at a time, however many ask', async () => {
    const { names, pending } = setUp()
    const asked = [lookUp(names, 'a'), lookUp(names, 'a'), names.resolve('a')]
    expect(pending).toHaveLength(1)
    pending[0]?.answer(found('10.0.0.1'))
    expect(await Promise.all(asked)).toEqual([
      ['10.0.0.1'],
      ['10.0.0.1'],
      { addresses: ['10.0.0.1'], forMs: 10_000 },
    ])
  })

  test('names that are not answered keep no other waiting', async () => {
    const { names, pending } = setUp()
    const dead = Array.from({ length: 1_000 }, (_, i) => lookUp(names, `dead${i}`))
    const healthy = lookUp(names, 'healthy')
    pending.at(-1)?.answer(found('10.0.0.1'))
    expect(await healthy).toEqual(['10.0.0.1'])
    expect(dead).toHaveLength(1_000)
  })

  test('a known address is used without a lookup until its time is over', async () => {
    const { names, pending, clock } = setUp()
    const first = lookUp(names, 'a')
    pending[0]?.answer(found('10.0.0.1'))
    await first
    clock.ms += 9_999
    await lookUp(names, 'a')
    expect(pending).toHaveLength(1)
  })

  test('early renewal of an answer keeps connections from waiting, whatever the name server does', async () => {
    const { names, pending, clock } = setUp()
    const first = lookUp(names, 'a')
    pending[0]?.answer(found('10.0.0.1'))
    await first
    clock.ms += 10_000
    const renewal = names.resolve('a')
    renewal.catch(() => undefined)
    expect(pending).toHaveLength(2)
    // The lookup may take any time: clients that resolve the name do not wait for it.
    for (const ms of [0, 1_000, 3_000, 60_000, 3_600_000]) {
      clock.ms += ms
      expect(await lookUp(names, 'a')).toEqual(['10.0.0.1'])
    }
    expect(pending).toHaveLength(2)
    pending[1]?.fail('EAI_AGAIN')
    await expect(renewal).rejects.toThrow('EAI_AGAIN')
    expect(await lookUp(names, 'a')).toEqual(['10.0.0.1'])
    expect(pending).toHaveLength(2)
  })

  test('an answer whose time is over is used after a moment without a new one', async () => {
    const { names, pending, clock } = setUp()
    const first = lookUp(names, 'a')
    pending[0]?.answer(found('10.0.0.1'))
    await first
    clock.ms += 60_000
    // This takes a tenth of a second of real time.
    expect(await lookUp(names, 'a')).toEqual(['10.0.0.1'])
    expect(pending).toHaveLength(2)
    const next = lookUp(names, 'a')
    pending[1]?.answer(found('10.0.0.2'))
    expect(await next).toEqual(['10.0.0.2'])
  })

  test('an address is not used any more after the answer that there is no such name', async () => {
    const { names, pending, clock } = setUp()
    const first = lookUp(names, 'a')
    pending[0]?.answer(found('10.0.0.1'))
    await first
    clock.ms += 60_000
    const next = lookUp(names, 'a')
    pending[1]?.fail('ENOTFOUND')
    await expect(next).rejects.toMatchObject({ code: 'ENOTFOUND', hostname: 'a' })
  })

  test('a name without an address is looked up once a second at most', async () => {
    const { names, pending, clock } = setUp()
    const first = lookUp(names, 'a')
    pending[0]?.fail('EAI_AGAIN')
    await expect(first).rejects.toMatchObject({ code: 'EAI_AGAIN' })
    clock.ms += 999
    await expect(lookUp(names, 'a')).rejects.toMatchObject({ code: 'EAI_AGAIN' })
    await expect(names.resolve('a')).rejects.toMatchObject({ code: 'EAI_AGAIN' })
    expect(pending).toHaveLength(1)
    clock.ms += 1
    const second = lookUp(names, 'a')
    pending[1]?.answer(found('10.0.0.1'))
    expect(await second).toEqual(['10.0.0.1'])
  })

  test('an answer is not kept for longer than a day without a new one', async () => {
    const { names, pending, clock } = setUp()
    const first = lookUp(names, 'a')
    pending[0]?.answer(found('10.0.0.1'))
    await first
    clock.ms += 86_400_000 + 10_000
    const next = lookUp(names, 'a')
    pending[1]?.answer(found('10.0.0.2'))
    expect(await next).toEqual(['10.0.0.2'])
  })

  test('an address that name servers have not confirmed for a day is not used any more', async () => {
    const { names, pending, clock } = setUp()
    const first = lookUp(names, 'a')
    pending[0]?.answer(found('10.0.0.1'))
    await first
    clock.ms += 86_400_000
    const within = lookUp(names, 'a')
    pending[1]?.fail('EAI_AGAIN')
    expect([await within, names.hasAddresses('a')]).toEqual([['10.0.0.1'], true])
    clock.ms += 10_000
    const after = lookUp(names, 'a')
    pending[2]?.fail('EAI_AGAIN')
    await expect(after).rejects.toMatchObject({ code: 'EAI_AGAIN', hostname: 'a' })
    expect(names.hasAddresses('a')).toBe(false)
  })

  test.each([
    [0, ['::1', '127.0.0.1']],
    [4, ['127.0.0.1']],
    [6, ['::1']],
  ])('of the family %i there are the addresses %j', async (family, expected) => {
    const { names, pending } = setUp()
    const asked = lookUp(names, 'a', family)
    pending[0]?.answer(found('::1', '127.0.0.1'))
    expect(await asked).toEqual(expected)
  })

  test('a caller that does not want all addresses gets one', async () => {
    const { names, pending } = setUp()
    const asked = new Promise((resolve) =>
      names.lookup('a', {}, (error, address, family) => resolve([error, address, family])),
    )
    pending[0]?.answer(found('::1', '127.0.0.1'))
    expect(await asked).toEqual([null, '::1', 6])
  })

  test('a name beyond the maximum of pending lookups fails as others do: by the callback, later', async () => {
    const { names, pending } = setUp()
    for (let i = 0; i < 10_000; i++) void lookUp(names, `dead${i}`)
    const called: unknown[] = []
    names.lookup('one-too-many', {}, (...answer) => called.push(answer))
    expect(called).toEqual([])
    await expect(lookUp(names, 'another')).rejects.toMatchObject({ code: 'EAI_AGAIN', hostname: 'another' })
    expect(called).toEqual([[expect.objectContaining({ code: 'EAI_AGAIN', hostname: 'one-too-many' }), '']])
    await expect(names.resolve('a-third')).rejects.toMatchObject({ code: 'EAI_AGAIN', hostname: 'a-third' })
    expect(pending).toHaveLength(10_000)
  })

  test('there are not more than ten thousand names', async () => {
    const { names, pending } = setUp()
    for (let i = 0; i < 10_001; i++) {
      const asked = lookUp(names, `name${i}`)
      pending[i]?.answer(found('10.0.0.1'))
      await asked
    }
    await lookUp(names, 'name10000')
    expect(pending).toHaveLength(10_001)
    void lookUp(names, 'name0')
    expect(pending).toHaveLength(10_002)
  })
})
