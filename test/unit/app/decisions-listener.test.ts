import { expect, test } from 'vitest'
import { liveFor } from '../../../proxy/app/listen/decisions/listener.ts'
import type { HandlerOptions } from '../../../proxy/server/handler-options.ts'

const socket = { remoteAddress: '192.0.2.1', remotePort: 1, localAddress: '192.0.2.2', localPort: 2 }

test.each([true, false])(
  "the listener for decisions asks its own connections whether a client is named, not those of the clients' listener: %s",
  (isWithoutClient) => {
    const connectionsOf = (address: string, isWithout: boolean) => ({
      addressOf: () => address,
      isWithoutClient: () => isWithout,
    })
    const ofClients = (): HandlerOptions => {
      const options: Partial<HandlerOptions> = {
        connections: connectionsOf('198.51.100.1', !isWithoutClient),
      }
      return options as HandlerOptions
    }
    let active = ofClients()
    const live = liveFor(
      {
        get options() {
          return active
        },
      },
      connectionsOf('192.0.2.1', isWithoutClient),
    )
    for (let reloads = 0; reloads < 2; reloads++) {
      expect(live.options.connections.addressOf(socket)).toBe('192.0.2.1')
      expect(live.options.connections.isWithoutClient(socket)).toBe(isWithoutClient)
      active = ofClients()
    }
  },
)
