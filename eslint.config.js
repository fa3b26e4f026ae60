import regexp from 'eslint-plugin-regexp'
import tseslint from 'typescript-eslint'

export default tseslint.config(
  { ignores: ['dist/', '**/node_modules/', '**/.next/', 'coverage/', 'data/'] },
  ...tseslint.configs.strictTypeChecked,
  {
    languageOptions: { parserOptions: { projectService: true } },
    rules: {
      'no-restricted-exports': ['error', { restrictDefaultExports: { direct: true } }],
      '@typescript-eslint/consistent-type-definitions': ['error', 'type'],
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/no-non-null-assertion': 'error',
      // Numbers in templates are how field values and messages are written here.
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      '@typescript-eslint/no-confusing-void-expression': [
        'error',
        { ignoreArrowShorthand: true, ignoreVoidReturningFunctions: true },
      ],
    },
  },
  {
    files: ['{proxy,origin,shared}/**/*.ts'],
    rules: {
      '@typescript-eslint/no-restricted-imports': [
        'error',
        { name: 'node:http', allowTypeImports: true, message: 'See shared/node-http.ts.' },
      ],
    },
  },
  {
    files: ['{proxy,origin,shared,scripts}/**/*.ts'],
    rules: { 'max-lines-per-function': ['error', 60] },
  },
  // What clients and backends send is matched in time that grows with its length, not with its square.
  {
    files: ['proxy/{http,limits,request}/**/*.ts'],
    plugins: { regexp },
    rules: { 'regexp/no-super-linear-backtracking': 'error', 'regexp/no-super-linear-move': 'error' },
  },
  // What Next.js, and tools, look for.
  {
    files: ['**/*.config.{js,ts}', '.dependency-cruiser.js', 'test/apps/servers/next/app/**'],
    rules: { 'no-restricted-exports': 'off' },
  },
  { files: ['**/*.js'], extends: [tseslint.configs.disableTypeChecked] },
)
