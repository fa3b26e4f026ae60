import { createServer } from 'node:http'
import { createSchema, createYoga } from 'graphql-yoga'

// A subscription whose next event is published only once the client has asked for it: an event that is held back on its
// way is never followed by another.

const waiting = new Map()

function wake(id) {
  const entry = waiting.get(id) ?? Promise.withResolvers()
  waiting.set(id, entry)
  return entry
}

const schema = createSchema({
  typeDefs: `
    type Query { echo(text: String!): String! }
    type Mutation { next(id: ID!): Boolean! }
    type Subscription { events(id: ID!, count: Int!): String! }
  `,
  resolvers: {
    Query: { echo: (_, { text }) => text },
    Mutation: {
      next: (_, { id }) => {
        wake(id).resolve()
        return true
      },
    },
    Subscription: {
      events: {
        async *subscribe(_, { id, count }) {
          for (let index = 0; index < count; index++) {
            yield { events: `event ${index} of ${id}` }
            await wake(id).promise
            waiting.delete(id)
          }
        },
      },
    },
  },
})

const yoga = createYoga({ schema, logging: false, graphiql: false })
createServer(yoga).listen(Number(process.env.PORT), '127.0.0.1', () => console.log('listening'))
