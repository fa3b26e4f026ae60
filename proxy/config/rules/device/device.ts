import { z } from 'zod'
import { duration } from '../../../../shared/settings/kinds.ts'
import type { DevicePolicy } from '../../../policy.ts'
import { statusRange } from '../rule-cost.ts'

const needsStatus = 'needs status codes from 200 to 399, or 2xx or 3xx: those of a sign-in that worked'
const statuses = z
  .union(
    [statusRange.transform((only) => [only]), z.array(statusRange).min(1, 'needs at least one entry')],
    needsStatus,
  )
  .refine((ranges) => ranges.every(({ first, last }) => first >= 200 && last <= 399), needsStatus)

const needsCookie =
  'needs 1 to 64 letters, digits, dashes and underscores, such as sluice_device or __Host-sluice_device'

/** `device` of a rule, as written. Browsers keep no cookie for more than 400 days. */
export const device = z
  .strictObject(
    {
      status: statuses.meta({
        description: 'Status codes of the responses that say that a sign-in worked, such as 303 or 2xx.',
      }),
      cookie: z
        .string(needsCookie)
        .regex(/^[\w-]{1,64}$/, needsCookie)
        .prefault('sluice_device')
        .meta({ description: 'Name of the cookie. The backend never gets it.' }),
      for: duration('1m', '400d', ['s', 'm', 'h', 'd']).schema.prefault('90d').meta({
        description: 'How long a device is known after it has signed in.',
      }),
    },
    'needs a mapping with status, such as { status: [2xx, 303] }',
  )
  .transform(({ status, cookie, for: forMs }): DevicePolicy => ({ cookie, forMs, status }))
