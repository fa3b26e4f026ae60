import { defineConfig } from 'oxlint'

export default defineConfig({
  plugins: ['typescript'],
  jsPlugins: ['eslint-plugin-regexp'],
  categories: { correctness: 'error' },
  options: { typeAware: true, denyWarnings: true, reportUnusedDisableDirectives: 'error' },
  // The last one is generated.
  ignorePatterns: ['dist', '**/.next', 'coverage', 'data', 'proxy/config/written/sluice-yaml.ts'],
  rules: {
    'no-array-constructor': 'error',
    // What terminals and clients send is matched here.
    'no-control-regex': 'off',
    'no-restricted-exports': ['error', { restrictDefaultExports: { direct: true } }],
    'no-unused-expressions': ['error', { allowShortCircuit: false, allowTernary: false }],
    'no-useless-constructor': 'error',
    'no-var': 'error',
    'prefer-const': 'error',
    'prefer-rest-params': 'error',
    'prefer-spread': 'error',
    'typescript/ban-ts-comment': ['error', { minimumDescriptionLength: 10 }],
    'typescript/consistent-type-definitions': ['error', 'type'],
    'typescript/consistent-type-imports': 'error',
    'typescript/no-dynamic-delete': 'error',
    'typescript/no-empty-object-type': 'error',
    'typescript/no-explicit-any': 'error',
    'typescript/no-extraneous-class': 'error',
    'typescript/no-invalid-void-type': 'error',
    'typescript/no-namespace': 'error',
    'typescript/no-non-null-asserted-nullish-coalescing': 'error',
    'typescript/no-non-null-assertion': 'error',
    'typescript/no-require-imports': 'error',
    'typescript/no-unnecessary-type-constraint': 'error',
    'typescript/no-unsafe-function-type': 'error',
    'typescript/prefer-literal-enum-member': 'error',
    // Only strings are sorted without a comparison.
    'typescript/require-array-sort-compare': 'off',
    // Numbers in templates are how field values and messages are written here.
    'typescript/restrict-template-expressions': ['error', { allowNumber: true }],
    'typescript/unified-signatures': 'error',
  },
  overrides: [
    {
      // These need types, which JavaScript does not declare.
      files: ['**/*.ts'],
      rules: {
        'typescript/no-confusing-void-expression': [
          'error',
          { ignoreArrowShorthand: true, ignoreVoidReturningFunctions: true },
        ],
        'typescript/no-deprecated': 'error',
        'typescript/no-generated-empty-object-type': 'error',
        'typescript/no-misused-promises': 'error',
        'typescript/no-mixed-enums': 'error',
        'typescript/no-unnecessary-boolean-literal-compare': 'error',
        'typescript/no-unnecessary-condition': 'error',
        'typescript/no-unnecessary-template-expression': 'error',
        'typescript/no-unnecessary-type-arguments': 'error',
        'typescript/no-unnecessary-type-assertion': 'error',
        'typescript/no-unnecessary-type-conversion': 'error',
        'typescript/no-unnecessary-type-parameters': 'error',
        'typescript/no-unsafe-argument': 'error',
        'typescript/no-unsafe-assignment': 'error',
        'typescript/no-unsafe-call': 'error',
        'typescript/no-unsafe-enum-assignment': 'error',
        'typescript/no-unsafe-enum-comparison': 'error',
        'typescript/no-unsafe-member-access': 'error',
        'typescript/no-unsafe-return': 'error',
        'typescript/only-throw-error': 'error',
        'typescript/prefer-promise-reject-errors': 'error',
        'typescript/prefer-reduce-type-parameter': 'error',
        'typescript/prefer-return-this-type': 'error',
        'typescript/related-getter-setter-pairs': 'error',
        'typescript/require-await': 'error',
        'typescript/restrict-plus-operands': [
          'error',
          {
            allowAny: false,
            allowBoolean: false,
            allowNullish: false,
            allowNumberAndString: false,
            allowRegExp: false,
          },
        ],
        'typescript/return-await': ['error', 'error-handling-correctness-only'],
        'typescript/use-unknown-in-catch-callback-variable': 'error',
      },
    },
    { files: ['**/*.js'], rules: { 'typescript/restrict-template-expressions': 'off' } },
    {
      files: ['{proxy,origin,shared}/**/*.ts'],
      rules: {
        'typescript/no-restricted-imports': [
          'error',
          { name: 'node:http', allowTypeImports: true, message: 'See shared/node-http.ts.' },
        ],
      },
    },
    {
      files: ['{proxy,origin,shared,scripts}/**/*.ts'],
      rules: { 'max-lines-per-function': ['error', 60] },
    },
    {
      // What clients and backends send is matched in time that grows with its length, not with its square.
      files: ['proxy/{http,limits,request}/**/*.ts'],
      rules: { 'regexp/no-super-linear-backtracking': 'error', 'regexp/no-super-linear-move': 'error' },
    },
    {
      // What Next.js, and tools, look for.
      files: ['**/*.config.{js,ts}', '.dependency-cruiser.js', 'test/apps/servers/next/app/**'],
      rules: { 'no-restricted-exports': 'off' },
    },
  ],
})
