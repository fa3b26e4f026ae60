import { Option, type Command } from 'commander'
import type { AdminOptions } from './admin-client.ts'
import type { BanOptions, ListOptions, OverrideOptions, UnbanOptions } from './entries.ts'
import type { PlanOptions, PlansOptions } from './plans.ts'
import type { ClientOptions, LimitedOptions } from './verbs.ts'
import type { TopOptions } from '../top/verb.ts'
import { example, withJson, type Report } from '../verb-options.ts'

const clientHelp =
  'an address, PART=VALUE for each part of the key, or h:… as `limited` prints it; @FILE for a value'

/** Adds the verbs that ask a running gateway, in the order of the help. */
export function addOperatorVerbs(program: Command, report: Report): void {
  addGatewayVerbs(program, report)
  addClientVerbs(program, report)
  addBanVerbs(program, report)
  addQuotaVerbs(program, report)
}

function addGatewayVerbs(program: Command, report: Report): void {
  toGateway(program.command('status'))
    .description('show whether a running gateway takes traffic, and the state of its store and backend')
    .addHelpText('after', example('sluice status --admin http://10.0.0.11:9090'))
    .action(async (options: AdminOptions) => {
      report(await (await import('./verbs.ts')).showStatus(options))
    })

  toGateway(program.command('replicas'))
    .description('list the replicas that share counters, and their tables of limits')
    .addHelpText('after', example('sluice replicas'))
    .action(async (options: AdminOptions) => {
      report(await (await import('./replicas.ts')).listReplicas(options))
    })

  toGateway(program.command('top'))
    .description('show the rates of the rules and the clients that are refused the most, live; q ends it')
    .option('--once', 'print it once; the default unless standard output is a terminal')
    .option('--interval <seconds>', 'time between two updates', '2')
    .addHelpText('after', example('sluice top --interval 5\n  sluice top --json --once'))
    .action(async (options: TopOptions) => {
      report(await (await import('../top/verb.ts')).top(options))
    })

  toGateway(program.command('reload'))
    .description('make a running gateway reload its settings file and apply the table of limits')
    .addHelpText('after', example('sluice reload --admin http://10.0.0.11:9090'))
    .action(async (options: AdminOptions) => {
      report(await (await import('./reload.ts')).reloadGateway(options))
    })
}

function addClientVerbs(program: Command, report: Report): void {
  toGateway(program.command('show'))
    .description('show how much of its limits a client has used')
    .argument('<client...>', clientHelp)
    .option('--rule <name>', 'under this rule only')
    .addHelpText(
      'after',
      example('sluice show 192.0.2.7\n  sluice show --rule api header:x-api-key=@key.txt'),
    )
    .action(async (client: string[], options: ClientOptions) => {
      report(await (await import('./verbs.ts')).showClient(client, options))
    })

  toGateway(program.command('limited'))
    .description('list the clients that are over a limit, those with the most refusals first')
    .option('--rule <name>', 'under this rule only')
    .option('--limit <number>', 'maximum number of lines, 1 to 1000; default 100')
    .addHelpText('after', example('sluice limited --rule login --limit 10'))
    .action(async (options: LimitedOptions) => {
      report(await (await import('./verbs.ts')).listLimited(options))
    })

  toGateway(program.command('bans'))
    .description('list the banned clients, those whose bans end last first')
    .option('--limit <number>', 'maximum number of lines, 1 to 10000; default 100')
    .addHelpText('after', example('sluice bans --limit 10'))
    .action(async (options: ListOptions) => {
      report(await (await import('./entries.ts')).listBans(options))
    })

  toGateway(program.command('overrides'))
    .description('list the clients that were given a limit of their own')
    .option('--limit <number>', 'maximum number of lines, 1 to 10000; default 100')
    .addHelpText('after', example('sluice overrides'))
    .action(async (options: ListOptions) => {
      report(await (await import('./entries.ts')).listOverrides(options))
    })

  toGateway(program.command('plans'))
    .description('list clients with a plan that was set for them')
    .option('--limit <number>', 'maximum number of lines, 1 to 10000; default 100')
    .addHelpText('after', example('sluice plans'))
    .action(async (options: PlansOptions) => {
      report(await (await import('./plans.ts')).listPlans(options))
    })
}

function addBanVerbs(program: Command, report: Report): void {
  toGateway(program.command('reset'))
    .description('let a client back in: reset its counters on all replicas')
    .argument('<client...>', clientHelp)
    .option('--rule <name>', 'under this rule only')
    .addHelpText('after', example('sluice reset 192.0.2.7 --rule login'))
    .action(async (client: string[], options: ClientOptions) => {
      report(await (await import('./verbs.ts')).resetClient(client, options))
    })

  toGateway(program.command('ban'))
    .description('refuse all requests of a client for some time, on all replicas')
    .argument('<client...>', clientHelp)
    .requiredOption('--for <time>', 'how long, from 1s to 365d')
    .option('--rule <name>', 'only requests that this rule counts')
    .option('--reason <text>', 'reason, for the list and the log')
    .addHelpText('after', example('sluice ban 192.0.2.7 --for 1h --reason scraping'))
    .action(async (client: string[], options: BanOptions) => {
      report(await (await import('./entries.ts')).ban(client, options))
    })

  toGateway(program.command('unban'))
    .description('lift the bans of a client, including those by rules; its counters stay')
    .argument('<client...>', clientHelp)
    .option('--rule <name>', 'only the ban under this rule')
    .addHelpText('after', example('sluice unban 192.0.2.7'))
    .action(async (client: string[], options: UnbanOptions) => {
      report(await (await import('./entries.ts')).unban(client, options))
    })
}

function addQuotaVerbs(program: Command, report: Report): void {
  toGateway(program.command('override'))
    .description('give a client another limit under a rule for some time, on all replicas')
    .argument('<client...>', clientHelp)
    .requiredOption('--rule <name>', 'the rule')
    .option('--requests <number>', 'requests that the client may send instead of the number of the rule')
    .option('--for <time>', 'how long, from 1s to 365d')
    .option('--label <text>', 'name of the client in lists')
    .addOption(
      new Option('--remove', 'remove the override, so that the limit of the rule applies again').conflicts([
        'requests',
        'for',
        'label',
      ]),
    )
    .addHelpText(
      'after',
      example(
        'sluice override header:x-api-key=@key.txt --rule api --requests 1000 --for 1d --label Acme\n' +
          '  sluice override header:x-api-key=@key.txt --rule api --remove',
      ),
    )
    .action(async (client: string[], options: OverrideOptions) => {
      report(await (await import('./entries.ts')).override(client, options))
    })

  toGateway(program.command('plan'))
    .description('show, set or remove the plan of a client, under rules with plan: store, on all replicas')
    .argument('<client...>', `${clientHelp}; then the name of the plan to set`)
    .option('--rule <name>', 'the rule that says what the client is; default: all that count by these parts')
    .option('--remove', 'remove the plan, so that the client has the requests of the rule')
    .addHelpText(
      'after',
      example('sluice plan jwt:sub=customer-4711 pro\n  sluice plan jwt:sub=customer-4711 --remove'),
    )
    .action(async (client: string[], options: PlanOptions) => {
      report(await (await import('./plans.ts')).plan(client, options))
    })
}

/** Adds the option for the gateway's address. The default is resolved on use, because it may be in the settings file. */
function toGateway(command: Command): Command {
  return withJson(
    command.option(
      '--admin <url>',
      'URL of its admin listener; default: from ADMIN_HOST and ADMIN_PORT or the settings file here; the token is in ADMIN_TOKEN',
    ),
  ).hook('preAction', async (asked) => {
    if (asked.getOptionValue('admin') !== undefined) return
    const { adminHere } = await import('./admin-here.ts')
    asked.setOptionValue('admin', adminHere(process.env, process.cwd()))
  })
}
