import { describe, expect, test } from 'vitest'
import { createProgram } from '../../../proxy/cli/program.ts'

const program = createProgram(() => undefined)

/** The words of a command line, as a shell splits it; quotes only. */
function wordsOf(line: string): string[] {
  return [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, bare]) => quoted ?? bare ?? '')
}

test('the command line has verbs', () => {
  expect(program.commands.map((command) => command.name())).toContain('replay')
})

describe.each(program.commands.map((command) => [command.name(), command] as const))(
  '%s',
  (name, command) => {
    let help = ''
    command.configureOutput({ writeOut: (text) => (help += text) })
    command.outputHelp()

    test('each verb has --json, and a description of itself and of each option', () => {
      expect(command.options.map(({ long }) => long)).toContain('--json')
      for (const { description } of [...command.options, ...command.registeredArguments])
        expect(description).not.toBe('')
      expect(command.description()).not.toBe('')
    })

    test('the examples in its help can be parsed', async () => {
      const [, examples = ''] = help.split(/\nExamples?:\n/)
      const lines = examples.split('\n').filter((line) => line !== '')
      expect(lines.length).toBeGreaterThan(0)
      for (const line of lines) {
        const [program_ = '', verb = '', ...rest] = wordsOf(line.split(' > ')[0] ?? '')
        expect([program_, verb]).toEqual(['sluice', name])
        const asked = createProgram(() => undefined).commands.find((each) => each.name() === name)
        let isRun = false
        asked?.exitOverride().action(() => {
          isRun = true
        })
        await asked?.parseAsync(rest, { from: 'user' })
        expect(isRun, line).toBe(true)
      }
    })
  },
)
