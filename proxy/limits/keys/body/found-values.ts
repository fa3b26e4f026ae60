import type { UnreadKey } from '../../../telemetry/telemetry.ts'

/** A value at the name that a rule counts by, as it was sent. */
export type FoundValue = {
  /** A character for each byte, without the escapes of its format. */
  readonly text: string
  /** Which element of a batch it is in, from 0; 0 where the body is no batch. */
  readonly element: number
  /** Values of the same item are alternatives: a backend takes one of them. */
  readonly item: number
}

/** What one reader has found in a body. */
export type Findings = {
  readonly values: readonly FoundValue[]
  /** How many elements a batch has that could be requests; 1 for anything else. */
  readonly elements: number
  /** What may be read otherwise. */
  readonly unread: UnreadKey | undefined
  /** Some values were left out, since there are too many. */
  readonly isCut: boolean
}

/** Values that are looked at in a body: a batch of so many requests in 64 KiB would have 30 bytes for each. */
export const MAX_VALUES = 2000
