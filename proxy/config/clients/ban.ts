import { z } from 'zod'
import { longDuration, oneOf, wholeNumber } from '../../../shared/settings/kinds.ts'
import type { BanPolicy } from '../../policy.ts'

/** `ban` of a rule, as written. */
export const ban = z
  .strictObject(
    {
      after: wholeNumber(1, 1_000_000).schema.meta({
        description: "Refusals of a client, within the rule's window, after which it is banned.",
      }),
      for: longDuration.schema.meta({ description: 'How long the first ban lasts.' }),
      max: longDuration.schema.optional().meta({
        description: 'Each ban in a row is twice as long as the one before, up to this. Default: as for.',
      }),
      scope: oneOf(['rule', 'all']).schema.prefault('rule').meta({
        description: 'rule: banned from what the rule counts; all: from everything.',
      }),
    },
    'needs a mapping with after and for',
  )
  .refine((written) => written.max === undefined || written.max >= written.for, {
    path: ['max'],
    error: 'needs a max that is at least as long as for',
  })
  .transform(({ after, for: forMs, max: maxMs = forMs, scope }): BanPolicy => ({
    after,
    forMs,
    maxMs,
    scope,
  }))
