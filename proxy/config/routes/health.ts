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
          'What is asked for with GET, whatever path the URL has. A server works that answers 200 to 399.',
      }),
      every: duration('100ms', '1h', ['ms', 's', 'm', 'h'])
        .schema.prefault('5s')
        .meta({ description: 'How often each server is asked. An answer may take as long, but at most 5s.' }),
      fails: wholeNumber(1, 100)
        .schema.prefault(3)
        .meta({ description: 'Failures in a row after which a server is not used.' }),
      passes: wholeNumber(1, 100)
        .schema.prefault(2)
        .meta({ description: 'Passes in a row after which it is used again.' }),
    },
    'needs a mapping with path',
  )
  .transform(({ every, ...rest }): RouteHealth => ({ ...rest, everyMs: every }))
