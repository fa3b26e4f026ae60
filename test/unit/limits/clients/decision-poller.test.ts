import { test } from 'vitest'
import { DecisionPoller } from '../../../../proxy/limits/clients/crowdsec/decision-poller.ts'
import { eventually } from '../../../support/wait/eventually.ts'

test('polling goes on although the metrics or the log throw', async () => {
  let polls = 0
  const fail = (): never => {
    throw new Error('no room')
  }
  const settings = { url: 'http://127.0.0.1', keyFile: '/there/is/no/key', everyMs: 1 }
  const poller = new DecisionPoller(settings, {
    apply: () => undefined,
    telemetry: {
      crowdsecPolled() {
        polls += 1
        if (polls % 2 === 0) fail()
      },
    },
    userAgent: 'sluice/0',
    log: { info: fail, warn: fail },
    now: () => 0,
  })
  await poller.ready(5000)
  await eventually('it has polled again', () => polls > 3)
  poller.close()
})
