import { defineConfig } from 'oxfmt'

/** Also how generated files are formatted. */
export const style = { semi: false, singleQuote: true, printWidth: 110, trailingComma: 'all' } as const

export default defineConfig({
  ...style,
  sortPackageJson: false,
  ignorePatterns: [
    'package-lock.json',
    'data',
    'coverage',
    '*.schema.json',
    'test/unit/config/mistakes/*.yaml',
    // Templates of Go that make YAML.
    'deploy/helm/sluice/templates',
  ],
})
