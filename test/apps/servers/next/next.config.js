import { join } from 'node:path'

export default {
  poweredByHeader: true,
  // Where the packages are, two folders above.
  turbopack: { root: join(import.meta.dirname, '../..') },
  outputFileTracingRoot: join(import.meta.dirname, '../..'),
}
