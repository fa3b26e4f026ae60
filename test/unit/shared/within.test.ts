import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { endedWithin } from '../../../shared/within.ts'

describe('endedWithin', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  test('resolves at the limit while the work goes on', async () => {
    const ended = vi.fn()
    const waiting = endedWithin(1000, new Promise(() => undefined)).then(ended)
    await vi.advanceTimersByTimeAsync(999)
    expect(ended).not.toHaveBeenCalled()
    await vi.advanceTimersByTimeAsync(1)
    expect(ended).toHaveBeenCalledOnce()
    await waiting
  })

  test('endedWithin leaves no timer behind when the work ends or fails before the limit', async () => {
    await endedWithin(1000, Promise.resolve())
    await expect(endedWithin(1000, Promise.reject(new Error('failed')))).rejects.toThrow('failed')
    expect(vi.getTimerCount()).toBe(0)
  })
})
