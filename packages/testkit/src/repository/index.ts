/** The repository as a set of files, for tests that read it as a whole. */
export { type CodeBlock, codeBlocks } from './code-blocks.ts'
export { allFiles, pages, textOf, top } from './files.ts'
