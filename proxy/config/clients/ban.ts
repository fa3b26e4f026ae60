import { z } from 'zod'
import { longDuration, oneOf, wholeNumber } from '../../../shared/settings/kinds.ts'
import type { BanPolicy } from '../../policy.ts'

/** `ban` of a rule, as written. */
export const ban = z
  .strictObject(
    {
      after: wholeNumber(1, 1_000_000).schema.meta({
        description: "Number of refusals within the rule's window after which a client is banned.",
      }),
      for: longDuration.schema.meta({ description: 'Length of the first ban.' }),
      max: longDuration.schema.optional().meta({
        description:
          'Maximum length of a ban: each consecutive ban is twice as long as the one before. Default: the value of for.',
      }),
      scope: oneOf(['rule', 'all']).schema.prefault('rule').meta({
        description:
          'rule: banned from requests that the rule counts; all: from all requests of the address or, under another key, that count by it.',
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
