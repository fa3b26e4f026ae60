import { z } from 'zod'
import { duration, text, wholeNumber } from '../../../shared/settings/kinds.ts'
import type { RouteHealth } from '../../limits/rules/upstream-routes.ts'

const probedPath = text('a path such as /healthz, with or without a query', (path) =>
  /^\/[\x21\x22\x24-\x7e]*$/.test(path),
)

/** `health` of a route, as written. */
export const health = z
  .strictObject(
    {
      path: probedPath.schema.meta({
        description:
          'Path to request with GET, whatever path the URL has. A server is healthy if it answers 200 to 399.',
      }),
      every: duration('100ms', '1h', ['ms', 's', 'm', 'h']).schema.prefault('5s').meta({
        description:
          'Interval between two probes of a server. A probe times out after the same time, at most 5s.',
      }),
      fails: wholeNumber(1, 100)
        .schema.prefault(3)
        .meta({ description: 'Consecutive failed probes after which a server is not used.' }),
      passes: wholeNumber(1, 100)
        .schema.prefault(2)
        .meta({ description: 'Consecutive successful probes after which it is used again.' }),
    },
    'needs a mapping with path',
  )
  .transform(({ every, ...rest }): RouteHealth => ({ ...rest, everyMs: every }))
