import { GenericContainer } from 'testcontainers'

const repositoryRoot = new URL('../../../', import.meta.url).pathname
export const nodeImage = process.env['NODE_IMAGE'] || 'node:26-slim'

/** What the container tests call their images, apart from those that compose builds for use. */
export const testImages = { gateway: 'sluice-gateway:test', origin: 'sluice-origin:test' } as const

/** Builds a target of the Dockerfile. The image stays: it is the next build's cache. */
export function buildImage(target: keyof typeof testImages): Promise<GenericContainer> {
  return GenericContainer.fromDockerfile(repositoryRoot)
    .withTarget(target)
    .withBuildArgs({ NODE_IMAGE: nodeImage })
    .build(testImages[target], { deleteOnExit: false })
}
