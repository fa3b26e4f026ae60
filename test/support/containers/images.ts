import { GenericContainer } from 'testcontainers'

const repositoryRoot = new URL('../../../', import.meta.url).pathname
export const nodeImage = process.env['NODE_IMAGE'] || 'node:26-slim'

/** The names of the container tests' images, except those that compose builds. */
export const testImages = { gateway: 'sluice-gateway:test', origin: 'sluice-origin:test' } as const

/** Builds a target of the Dockerfile. Keeps the image as a cache for the next build. */
export function buildImage(target: keyof typeof testImages): Promise<GenericContainer> {
  return GenericContainer.fromDockerfile(repositoryRoot)
    .withTarget(target)
    .withBuildArgs({ NODE_IMAGE: nodeImage })
    .build(testImages[target], { deleteOnExit: false })
}
