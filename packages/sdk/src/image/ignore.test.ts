import { expect, test } from 'vitest'
import { ignoreOf, linesOfIgnore } from './ignore.ts'

const FILES = [
  'a.log',
  'src/a.log',
  'src/deep/b.ts',
  'node_modules/x/y',
  '.git/HEAD',
  'keep.log',
  'docs/README.md',
]

test.each<[name: string, ignore: string, left: string[]]>([
  ['a name, at the root alone', 'a.log', FILES.filter((file) => file !== 'a.log')],
  ['a directory with all in it', 'node_modules', FILES.filter((file) => !file.startsWith('node_'))],
  ['a star within a name', '*.log', FILES.filter((file) => !['a.log', 'keep.log'].includes(file))],
  ['two stars over names', '**/*.log', FILES.filter((file) => !file.endsWith('.log'))],
  ['everything but', '*\n!src\n', ['src/a.log', 'src/deep/b.ts']],
  ['what is taken back', '*.log\n!keep.log', FILES.filter((file) => file !== 'a.log')],
  [
    'the last one that matches',
    '!keep.log\n*.log',
    FILES.filter((file) => !/^(a|keep)\.log$/.test(file)),
  ],
  ['slashes around', '/docs/', FILES.filter((file) => !file.startsWith('docs'))],
  ['comments and empty lines', '# a.log\n\n  \n', FILES],
  ['dots within', './src/../docs', FILES.filter((file) => !file.startsWith('docs'))],
  ['a hidden directory', '.git', FILES.filter((file) => !file.startsWith('.git'))],
])('%s', (_, ignore, left) => {
  const ignored = ignoreOf(linesOfIgnore(ignore))
  expect(FILES.filter((file) => !ignored(file))).toEqual(left)
})
