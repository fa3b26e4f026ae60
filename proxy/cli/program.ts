import { Argument, Command, InvalidArgumentError, Option } from 'commander'
import { describeVerbs } from './command-tree.ts'
import type { ExplainOptions } from './explain/verb.ts'
import { addOperatorVerbs } from './operate/operator-verbs.ts'
import { status } from './output.ts'
import type { ReplayOptions } from './replay/verb.ts'
import type { RunOptions } from './run.ts'
import type { ValidateOptions } from './settings/validate.ts'
import { example, withJson, type Json, type Report } from './verb-options.ts'

/** The names of the formats in `replay/logs/formats.ts`. */
const formatNames = ['auto', 'common', 'combined', 'traefik', 'traefik-json', 'caddy', 'nginx-json', 'sluice']

/** Creates the command line with all its verbs. */
export function createProgram(report: Report): Command {
  const program = new Command('sluice')
    .description(
      'A rate-limiting reverse proxy: run it, check its limits, and try them before they take effect.',
    )
    .exitOverride()
    .addHelpText(
      'after',
      '\nExit status: 0, 1 for a negative result, 2 for wrong usage. Settings also come from the environment: docs/configuration.md',
    )
  addGatewayVerbs(program, report)
  addTableVerbs(program, report)
  addPresetVerb(program, report)
  addOperatorVerbs(program, report)
  return program
}

function addGatewayVerbs(program: Command, report: Report): void {
  program
    .command('run')
    .description('start the gateway; it logs to standard output and stops on SIGTERM and SIGINT')
    .option('--config <file>', 'the settings file (CONFIG_FILE), by default sluice.yaml', notEmpty)
    .option('--upstream <url>', 'the backend (UPSTREAM_URL)', notEmpty)
    .option('--port <number>', 'where clients connect (PORT)', notEmpty)
    .option('--json', 'has no effect: the log is JSON unless standard output is a terminal')
    .addHelpText('after', example('sluice run --upstream http://127.0.0.1:5000 --port 8080'))
    .action(async (options: RunOptions) => (await import('./run.ts')).run(options))

  withJson(program.command('validate'))
    .description('check the settings as the gateway does at startup, and print every mistake')
    .argument('[file]', 'the settings file, by default CONFIG_FILE or sluice.yaml', notEmpty)
    .option('--config <file>', 'the same as FILE, as for the other verbs', notEmpty)
    .addHelpText('after', example('sluice validate sluice.yaml'))
    .action(async (file: string | undefined, options: ValidateOptions) => {
      report((await import('./settings/validate.ts')).validate(file, options))
    })

  withJson(program.command('version'))
    .description('print the version')
    .addHelpText('after', example('sluice version'))
    .action(async (options: Json) => {
      const { version } = await import('../app/observe/version.ts')
      const { print, printJson } = await import('./output.ts')
      if (options.json) printJson({ version, node: process.versions.node })
      else print(version)
      report(status.yes)
    })

  withJson(program.command('completion'))
    .description('print a script that completes verbs and options in a shell')
    .addArgument(new Argument('<shell>', 'which shell').choices(['bash', 'zsh']))
    .addHelpText('after', example('sluice completion bash'))
    .action(async (shell: string, options: Json) => {
      const { presetNames } = await import('../config/presets.ts')
      const verbs = describeVerbs(program, new Map([['preset', presetNames]]))
      report((await import('./completion/verb.ts')).printCompletion(shell, verbs, options))
    })
}

function addTableVerbs(program: Command, report: Report): void {
  withJson(program.command('explain'))
    .description(
      'explain what the gateway would do with a request: its path, its client, and the rules that count it',
    )
    .argument('<method>', 'as sent')
    .argument('<target>', 'path and query, as sent')
    .option('--host <host>', 'the Host header, by default the host of the backend')
    .option('--ip <address>', 'the address that the connection comes from', '127.0.0.1')
    .option('-H, --header <line>', "a header, 'NAME: VALUE'; repeat it for more", collect, [])
    .option(
      '-d, --data <text>',
      'the body, or @FILE, or @- for standard input; JSON or a form, unless a header says another Content-Type',
    )
    .option('--config <file>', 'the settings file (CONFIG_FILE), by default sluice.yaml', notEmpty)
    .option('--admin <url>', 'ask the running gateway with this admin listener; the token is in ADMIN_TOKEN')
    .addHelpText(
      'after',
      example(
        "sluice explain POST '/LOGIN/?next=/' --ip 192.0.2.7 --header 'x-api-key: secret'\n" +
          `  sluice explain POST /login --data '{"email":"a@example.com"}'\n` +
          '  sluice explain POST /login --ip 192.0.2.7 --admin http://10.0.0.11:9090',
      ),
    )
    .action(async (method: string, target: string, options: ExplainOptions) => {
      report(await (await import('./explain/verb.ts')).explainVerb(method, target, options))
    })

  withJson(program.command('replay'))
    .description('show what the limits would have done to the requests in access logs')
    .argument('<log...>', 'plain, gzip or zstd; - for standard input')
    .option('--config <file>', 'the settings file (CONFIG_FILE), by default sluice.yaml', notEmpty)
    .addOption(
      new Option('--format <name>', 'format of the lines; auto detects it for each line')
        .choices(formatNames)
        .default('auto'),
    )
    .option('--host <host>', 'the host of requests whose log line does not have it')
    .addOption(new Option('--html', 'print a self-contained HTML page with plots').conflicts('json'))
    .option('--suggest', 'suggest limits that refuse few clients, and try them on a later part of the logs')
    .option('--exclude <client>', "leave out a client's requests; repeat it for more", collect, [])
    .addHelpText(
      'after',
      example(
        'sluice replay /var/log/nginx/access.log /var/log/nginx/access.log.2.gz\n' +
          '  sluice replay --html --suggest access.log > report.html',
      ),
    )
    .action(async (logs: string[], options: ReplayOptions) => {
      report(await (await import('./replay/verb.ts')).replay(logs, options))
    })
}

function addPresetVerb(program: Command, report: Report): void {
  withJson(program.command('presets'))
    .description('list the built-in limits for known applications, or show those of one')
    .argument('[preset]', 'its name')
    .addHelpText('after', example('sluice presets wordpress'))
    .action(async (name: string | undefined, options: Json) => {
      report((await import('./settings/presets.ts')).presets(name, options))
    })
}

/** Refuses an empty value, as a shell passes it for an unset variable: the settings would be taken from elsewhere. */
function notEmpty(value: string): string {
  if (value === '') throw new InvalidArgumentError('It is empty.')
  return value
}

function collect(value: string, before: readonly string[]): string[] {
  return [...before, value]
}
