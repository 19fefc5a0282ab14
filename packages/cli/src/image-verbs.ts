import type { Command } from 'commander'
import { collect, oneOf } from './option-values.ts'

/** `sandlot images …` */
export function addImageVerbs(program: Command): void {
  const images = program.command('images').description('work with images')
  images
    .command('list')
    .description('list images')
    .option('--json', 'print JSON')
    .action(async (options) => (await import('./commands/images.ts')).listImagesCommand(options))
  images
    .command('build')
    .description('build an image and print its id')
    .argument('<kind>', `${IMAGE_KINDS.slice(0, -1).join(', ')} or oci`, oneOf(...IMAGE_KINDS))
    .argument('<what>', 'the suite, the name in a registry, or the path')
    .argument('[packages...]', 'Debian packages')
    .option('--context <path>', 'dockerfile: where COPY takes files from (default: beside it)')
    .option('--target <stage>', 'dockerfile: the stage to build (default: the last)')
    .option('--arg <NAME=VALUE>', 'dockerfile: value of an ARG (again for more)', collect)
    .option('--timeout <duration>', 'dockerfile: how long each RUN may take (default: 1h)')
    .option('--verbose', 'all that the programs of the build print')
    .action(async (kind, what, packages, options) =>
      (await import('./commands/images.ts')).buildImageCommand(kind, what, packages, options),
    )
  images
    .command('remove')
    .description('remove an image that nothing uses')
    .argument('<id>')
    .action(async (id) => (await import('./commands/images.ts')).removeImageCommand(id))
  addImageUpkeepVerbs(images)
}

const IMAGE_KINDS = ['debian', 'registry', 'dockerfile', 'directory', 'tar', 'oci'] as const

function addImageUpkeepVerbs(images: Command): void {
  images
    .command('verify')
    .description('read layers and compare them with their digests; 1 where one is damaged')
    .argument('[id...]', 'default: all images')
    .action(async (ids) => {
      const { verifyImagesCommand } = await import('./commands/image-upkeep.ts')
      process.exitCode = await verifyImagesCommand(ids)
    })
  images
    .command('export')
    .description('write an image as an OCI archive, or all its files as one tar')
    .argument('<id>')
    .argument('<path>', 'a file that is not there yet, or - for standard output')
    .option('--format <format>', 'oci or tar (default: oci)', oneOf('oci', 'tar'))
    .action(async (id, path, options) =>
      (await import('./commands/image-upkeep.ts')).exportImageCommand(id, path, options),
    )
  images
    .command('import')
    .description('build an image from an OCI archive or from a tar of its files; print its id')
    .argument('<path>')
    .action(async (path) => (await import('./commands/image-upkeep.ts')).importImageCommand(path))
  images
    .command('prune')
    .description('remove results of build steps that nobody asked for by themselves')
    .option('--all', 'also every image that nothing uses')
    .option('--keep <size>', 'with --all: keep so much of what was used last, such as 20GiB')
    .action(async (options) =>
      (await import('./commands/image-upkeep.ts')).pruneImagesCommand(options),
    )
}
