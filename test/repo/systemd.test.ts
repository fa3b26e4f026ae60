import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { fitToOpenFiles } from '../../proxy/app/observe/open-files.ts'
import { loadGatewaySettings } from '../../proxy/config/settings.ts'
import { makeTemporaryDirectory } from '../support/run/temporary-directory.ts'

const root = join(import.meta.dirname, '../..')
const unit = readFileSync(join(root, 'deploy/systemd/sluice.service'), 'utf8')
const { settings } = loadGatewaySettings({}, makeTemporaryDirectory())

function valuesOf(name: string): string[] {
  return [...unit.matchAll(new RegExp(`^${name}=(.*)$`, 'gm'))].map(([, value = '']) => value)
}

test('the unit starts, reloads and stops the gateway as it wants it', () => {
  expect(valuesOf('ExecStart')).toEqual(['/usr/local/bin/sluice run'])
  expect(valuesOf('ExecReload')).toEqual(['/usr/local/bin/sluice reload', '/bin/kill -HUP $MAINPID'])
  // The first process stops its workers, in order.
  expect(valuesOf('KillMode')).toEqual(['mixed'])
  const stopMs = Number(valuesOf('TimeoutStopSec')[0]) * 1000
  expect(stopMs).toBeGreaterThan(settings.shutdownDelayMs + settings.shutdownGraceMs)
})

// By default, systemd gives up after five starts within ten seconds (systemd-system.conf, DefaultStartLimitBurst).
test('systemd starts the gateway again after any number of failures in a row', () => {
  expect(valuesOf('Restart')).toEqual(['on-failure'])
  expect(5 * Number(valuesOf('RestartSec')[0])).toBeGreaterThan(10)
})

test('the unit’s limit of open files is enough for the default settings', () => {
  const limit = Number(valuesOf('LimitNOFILE')[0])
  const fitted = fitToOpenFiles(settings, limit)
  expect(fitted.warnings).toEqual([])
  expect(fitted.settings.maxConnections).toBe(settings.maxConnections)
})

test('the unit runs as a user of its own, without rights that it does not need', () => {
  expect(valuesOf('DynamicUser')).toEqual(['yes'])
  expect(valuesOf('CapabilityBoundingSet')).toEqual(['CAP_NET_BIND_SERVICE'])
  // V8 compiles code at run time.
  expect(valuesOf('MemoryDenyWriteExecute')).toEqual([])
})

test('the example of credentials gives the user both files of a certificate, which only root can read', () => {
  const example = unit.replaceAll(/^# (?=LoadCredential=|Environment=)/gm, '')
  const given = [...example.matchAll(/^LoadCredential=([\w.]+):\S+$/gm)].map(([, name = '']) => name)
  const named = [...example.matchAll(/(TLS_\w+_FILE)=%d\/(\S+)/g)].map(([, variable, name]) => [
    variable,
    name,
  ])
  expect(named).toEqual([
    ['TLS_CERT_FILE', 'tls.crt'],
    ['TLS_KEY_FILE', 'tls.key'],
  ])
  expect(given).toEqual(named.map(([, name]) => name))
})
